// Takes the place of scripts.gen.ts in the tests of mutated Lua scripts.

import { createHash } from 'node:crypto'
import { readFileSync } from 'node:fs'

const scripts = JSON.parse(readFileSync(process.env.SPILLWAY_MUTATED_SCRIPTS, 'utf8'))

export const SCRIPTS = Object.fromEntries(
  Object.entries(scripts).map(([name, text]) => {
    const sha = createHash('sha1').update(text).digest('hex')
    return [name, { name, sha, text }]
  }),
)
