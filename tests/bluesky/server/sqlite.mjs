// What the PDS uses of better-sqlite3, by the SQLite inside Node.
import { DatabaseSync } from 'node:sqlite'

// The server retries or refuses by these names.
const NAMES = new Map([
  [5, 'SQLITE_BUSY'],
  [261, 'SQLITE_BUSY_RECOVERY'],
  [517, 'SQLITE_BUSY_SNAPSHOT'],
  [773, 'SQLITE_BUSY_TIMEOUT'],
  [1555, 'SQLITE_CONSTRAINT_PRIMARYKEY'],
  [2067, 'SQLITE_CONSTRAINT_UNIQUE'],
])

function named(work) {
  try {
    return work()
  } catch (error) {
    if ('errcode' in error) error.code = NAMES.get(error.errcode) ?? 'SQLITE_ERROR'
    throw error
  }
}

const bound = (values) => values.map((value) => (typeof value === 'boolean' ? +value : value))
const cell = (value) => (ArrayBuffer.isView(value) ? Buffer.from(value) : value)
const plain = (row) => Object.fromEntries(Object.entries(row).map(([name, value]) => [name, cell(value)]))

class Statement {
  #statement

  constructor(statement) {
    this.#statement = statement
    this.reader = statement.columns().length > 0
  }

  all(values = []) {
    return named(() => this.#statement.all(...bound(values))).map(plain)
  }

  run(values = []) {
    return named(() => this.#statement.run(...bound(values)))
  }

  iterate(values = []) {
    return this.all(values)
  }
}

export default class Database {
  #database

  constructor(file, { timeout = 0 } = {}) {
    this.#database = named(() => new DatabaseSync(file, { timeout }))
  }

  prepare(sql) {
    return new Statement(named(() => this.#database.prepare(sql)))
  }

  pragma(sql) {
    return this.prepare(`PRAGMA ${sql}`).all()
  }

  close() {
    this.#database.close()
  }
}
