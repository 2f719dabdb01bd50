/** Runs all cases of all clients against a running gateway. Writes the results as JSON to standard output. */
import { readFileSync } from 'node:fs'
import { CASES } from './cases.mjs'
import { CLIENTS } from './clients/all.mjs'
import { keyOf } from './gateway-config.mjs'
import { countRetries } from './retries.mjs'

const { SUITE_URL: url, SUITE_LOG: logFile } = process.env
// An SDK may report an error to the program and leave a promise of its own behind.
const unhandled = []
process.on('unhandledRejection', (error) => unhandled.push(String(error)))

const retries = Promise.all(
  CLIENTS.map((client, index) => countRetries(client, index, { url, logFile })),
)
const results = []
for (const [index, client] of CLIENTS.entries()) {
  const make = (knobs = {}, key = keyOf(`suite-${index}`)) => {
    const headers = { 'x-mock': JSON.stringify({ tokens: 3, ...knobs }) }
    return client.create({ url, key, headers, retries: false })
  }
  const outcomes = {}
  for (const [name, { needs, run }] of Object.entries(CASES)) {
    if (make()[needs] === undefined) {
      outcomes[name] = 'none'
      continue
    }
    try {
      await run(make)
      outcomes[name] = 'passed'
    } catch (error) {
      outcomes[name] = `failed: ${error.message}`
    }
    process.stderr.write(`${client.name}: ${name}: ${outcomes[name]}\n`)
  }
  results.push({
    name: client.name,
    versions: client.packages.map(versionOf),
    outcomes,
    noRetries: client.noRetries,
  })
}
const counted = await retries
for (const [index, result] of results.entries()) result.retries = counted[index]
process.stdout.write(JSON.stringify({ node: process.version, results, unhandled }))
process.exit(0)

function versionOf(name) {
  const file = new URL(`node_modules/${name}/package.json`, import.meta.url)
  return `${name} ${JSON.parse(readFileSync(file, 'utf8')).version}`
}
