/** Writes what `spillway init` promises, and over nothing that is there. */
import { writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { gatewaySchema } from '../config/schema.js'
import { STARTER } from './starter.js'

const SCHEMA_FILE = 'spillway.schema.json'

/** Whether it was written. */
export function writeStarter(file: string, force: boolean): boolean {
  try {
    // `wx`: whoever comes between the question and the answer is not written over either.
    writeFileSync(file, STARTER, { flag: force ? 'w' : 'wx' })
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error
    process.stderr.write(`${file} is there already; --force writes over it\n`)
    return false
  }
  const schema = join(dirname(file), SCHEMA_FILE)
  writeFileSync(schema, `${JSON.stringify(gatewaySchema(), undefined, 2)}\n`)
  process.stdout.write(`Written: ${file}, ${schema}

Next:
  export OPENAI_API_KEY=…        # or write url: mock in place of the key, to try things out
  spillway check ${file}
  spillway gateway --config ${file}
`)
  return true
}
