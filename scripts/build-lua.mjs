// Lua scripts ship as a generated TypeScript file, so that bundlers find them and nothing is read
// from disk at run time. The file is checked in: whoever reviews a script sees what is sent.
//
//   npm run lua      writes the file
//   --check          fails when the file is not what lua/ says

import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { assemble, toTypeScript } from './lua-source.mjs'
import { root } from './run-command.mjs'

const FOLDER = 'packages/spillway/src/store/redis/lua'
const OUTPUT = 'packages/spillway/src/store/redis/scripts.gen.ts'

try {
  const generated = generate()
  if (process.argv.includes('--check')) check(generated)
  else writeFileSync(join(root, OUTPUT), generated)
} catch (error) {
  process.stderr.write(`${FOLDER}: ${error.message}\n`)
  process.exitCode = 1
}

function generate() {
  const names = readdirSync(join(root, FOLDER))
    .filter((file) => file.endsWith('.lua'))
    .map((file) => file.slice(0, -'.lua'.length))
    .sort()
  return toTypeScript(names.map((name) => ({ name, text: assemble(name, read) })))
}

function read(name) {
  const file = join(root, FOLDER, `${name}.lua`)
  return existsSync(file) ? readFileSync(file, 'utf8') : undefined
}

function check(generated) {
  const file = join(root, OUTPUT)
  if (existsSync(file) && readFileSync(file, 'utf8') === generated) return
  process.stderr.write(
    `${OUTPUT} is not what ${FOLDER} says: run npm run lua and commit the file.\n`,
  )
  process.exitCode = 1
}
