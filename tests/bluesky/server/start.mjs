// Run Bluesky's own server (a PDS) and a DID directory on loopback until stdin closes.
//
// The environment has the settings of the PDS (PDS_…) and BLUESKY_PACKAGES, the folder of the installed packages. The
// first line of stdout has the ports. Each line of stdin is a time in milliseconds: the clock is set to it, then a line
// is printed.
import http from 'node:http'
import { registerHooks } from 'node:module'
import { once } from 'node:events'
import { createInterface } from 'node:readline'
import { pathToFileURL } from 'node:url'

const packages = pathToFileURL(`${process.env.BLUESKY_PACKAGES}/package.json`).href
registerHooks({
  resolve(specifier, context, next) {
    // The compiled module is never used, so that no compiler is needed.
    if (specifier === 'better-sqlite3') {
      return { url: new URL('./sqlite.mjs', import.meta.url).href, shortCircuit: true }
    }
    return next(specifier, context.parentURL === import.meta.url ? { ...context, parentURL: packages } : context)
  },
})
process.removeAllListeners('warning') // node:sqlite is called experimental

let ahead = 0
const MachineDate = Date
class MovableDate extends MachineDate {
  constructor(...parts) {
    super(...(parts.length ? parts : [MovableDate.now()]))
  }
  static now() {
    return MachineDate.now() + ahead
  }
}
globalThis.Date = MovableDate

const commands = createInterface({ input: process.stdin })[Symbol.asyncIterator]()
async function followClock() {
  const { value, done } = await commands.next()
  if (!done) ahead = Number(value) - MachineDate.now()
  return !done
}
await followClock() // before anything writes a date

const { PDS } = await import('@atproto/pds')
const { PlcServer, Database } = await import('@did-plc/server')
const { Secp256k1Keypair } = await import('@atproto/crypto')

async function listen(app) {
  const server = http.createServer(app).listen(0, '127.0.0.1')
  await once(server, 'listening')
  return server.address().port
}

const directory = await listen(PlcServer.create({ db: Database.mock() }).app)
const rotation = await Secp256k1Keypair.create({ exportable: true })
// By name, because the server resolves no address that is an IP address.
process.env.PDS_DID_PLC_URL = `http://localhost:${directory}`
process.env.PDS_PLC_ROTATION_KEY_K256_PRIVATE_KEY_HEX = Buffer.from(await rotation.export()).toString('hex')
const pds = await PDS.fromEnv()
await pds.ctx.sequencer.start()
console.log(JSON.stringify({ port: await listen(pds.app), directory, version: pds.ctx.cfg.service.version ?? null }))

while (await followClock()) console.log('{}')
process.exit(0)
