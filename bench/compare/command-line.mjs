/** The options of `npm run compare`. */
import { parseArgs } from 'node:util'
import { TABLES } from './tables.mjs'

const IDS = TABLES.map(({ id }) => id).join(', ')
const OPTIONS = {
  only: { type: 'string' },
  write: { type: 'boolean' },
  help: { type: 'boolean', short: 'h' },
}
const HELP = `Compares Spillway with other packages, in scenarios.

  npm run compare                        runs all scenarios, about 8 minutes; needs redis-server
  npm run compare -- --only SCENARIO     runs one of them
  npm run compare -- --write             also writes results.json, the page in docs/project and its plots
  npm run compare -- --help              prints this

Scenarios: ${IDS}
`

/** Prints the help, or the mistake in an option, and exits. */
export function readOptionsOrExit() {
  const values = parseOrExit()
  if (values.help) {
    process.stdout.write(HELP)
    process.exit(0)
  }
  if (values.only !== undefined && !TABLES.some(({ id }) => id === values.only)) {
    exitWith(`unknown scenario "${values.only}"; there are: ${IDS}`)
  }
  return values
}

function parseOrExit() {
  try {
    return parseArgs({ options: OPTIONS }).values
  } catch (error) {
    // Only the first sentence. The next one tells users to pass an unknown option as a file name.
    return exitWith(error.message.split(/\. |\n/)[0])
  }
}

function exitWith(mistake) {
  process.stderr.write(`${mistake}\nFor the options: npm run compare -- --help\n`)
  process.exit(2)
}
