// Print what X's own library makes of the texts of standard input, a JSON list: [length, valid, end of the valid range, links].
const { parseTweet, extractUrlsWithIndices } = require(process.argv[2]);
let input = "";
process.stdin.on("data", (piece) => (input += piece));
process.stdin.on("end", () => {
  const results = JSON.parse(input).map((text) => {
    const { weightedLength, valid, validRangeEnd } = parseTweet(text);
    const links = extractUrlsWithIndices(text.normalize()).map(({ url, indices }) => [url, indices[0]]);
    return [weightedLength, valid, validRangeEnd, links];
  });
  process.stdout.write(JSON.stringify(results));
});
