// Copies examples and their output into the documentation. In docs/**/*.md and README.md,
//
//   <!-- example: NAME.ts -->   and a ts block hold the text of examples/src/NAME.ts
//   <!-- output: NAME.ts -->    and a text block hold what that example prints
//
//   npm run docs     fills the blocks, running the examples whose output is shown
//   --check          fails when an example block differs; output blocks are left to the tests

import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join, relative } from 'node:path'
import { syncPage } from './docs-page.mjs'
import { root, runNode } from './run-command.mjs'
import { setupOrExit } from './setup.mjs'

const checking = process.argv.includes('--check')
const pages = findPages()
if (!checking) await setupOrExit({ build: ['examples'] })
// Inherited by the examples, so that pages contain no colour codes.
process.env.FORCE_COLOR = '0'

let problems = 0
for (const file of pages) {
  const before = readFileSync(file, 'utf8')
  const page = await syncPage(before, { source, output: checking ? undefined : output })
  const path = relative(root, file)
  for (const { line, message } of page.errors) report(`${path}:${line}: ${message}`)
  if (checking) {
    for (const { line, message } of page.changes) report(`${path}:${line}: ${message}`)
  } else if (page.text !== before) {
    writeFileSync(file, page.text)
    process.stderr.write(`updated ${path}\n`)
  }
}
if (problems > 0) {
  if (checking) process.stderr.write('run npm run docs to fill the blocks from the examples\n')
  process.exitCode = 1
}

function findPages() {
  const docs = join(root, 'docs')
  const found = existsSync(docs)
    ? readdirSync(docs, { recursive: true })
        .filter((name) => name.endsWith('.md'))
        .sort()
        .map((name) => join(docs, name))
    : []
  const readme = join(root, 'README.md')
  return existsSync(readme) ? [readme, ...found] : found
}

function source(name) {
  const file = join(root, 'examples/src', name)
  return existsSync(file) ? readFileSync(file, 'utf8') : undefined
}

async function output(name) {
  const file = join(root, 'examples/dist', name.replace(/\.ts$/, '.js'))
  const { code, stdout, output } = await runNode([file])
  if (code !== 0) throw new Error(`the example ended with exit code ${code}:\n${output}`)
  return stdout
}

function report(line) {
  problems += 1
  process.stderr.write(`${line}\n`)
}
