// Writes the generated pages of docs/reference from the built packages. `npm run docs` runs it.
//
//   --check     fails when a page differs, or an option has no description

import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { publicOptions } from '../api-options.mjs'
import { gatewayMetrics } from '../metric-names.mjs'
import { isMain, root } from '../run-command.mjs'
import { setupOrExit } from '../setup.mjs'
import { ERROR_TEXTS } from './error-texts.mjs'
import { optionsPage, readComment } from './options-page.mjs'
import { commandLinePage, errorCodesPage, metricsPage } from './pages.mjs'

const LIBRARY = 'packages/spillway'

if (isMain(import.meta.url)) await main(process.argv.includes('--check'))

async function main(isChecking) {
  await setupOrExit({ build: isChecking ? [] : ['packages/gateway'] })
  const facts = await readFacts()
  const problems = descriptionProblems(facts)
  for (const [path, text] of Object.entries(referencePages(facts))) {
    const file = join(root, path)
    if (existsSync(file) && readFileSync(file, 'utf8') === text) continue
    if (isChecking) problems.push(`${path} is not what the code says; run npm run docs`)
    else writeFileSync(file, text)
  }
  process.stdout.write(problems.map((line) => `${line}\n`).join(''))
  process.exitCode = problems.length > 0 ? 1 : 0
}

/** What the pages are made of, read from the built packages. */
export async function readFacts() {
  const { ORDER } = await importBuilt(`${LIBRARY}/dist/index.js`)
  const { COMMANDS } = await importBuilt('packages/gateway/dist/cli/commands.js')
  return {
    options: publicOptions(entriesOf(LIBRARY)),
    codes: errorCodes(ORDER),
    metrics: await gatewayMetrics(),
    commands: COMMANDS,
  }
}

export function referencePages({ options, codes, metrics, commands }) {
  return {
    'docs/reference/options.md': optionsPage(options),
    'docs/reference/error-codes.md': errorCodesPage(codes),
    'docs/reference/metrics.md': metricsPage(metrics),
    'docs/reference/cli.md': commandLinePage(commands),
  }
}

/** One line for each option, code, metric and flag without a description. */
export function descriptionProblems({ options, codes, metrics, commands }) {
  const flags = commands.flatMap(({ name, options: rows }) =>
    Object.entries(rows).map(([flag, { about }]) => [`spillway ${name} --${flag}`, about]),
  )
  const described = [
    ...options.map(({ type, path, comment }) => [`${type}.${path}`, readComment(comment).meaning]),
    ...codes.map(({ code }) => [code, ERROR_TEXTS[code]?.cause]),
    ...metrics.map(({ name, help }) => [name, help]),
    ...flags,
  ]
  const stale = Object.keys(ERROR_TEXTS).filter((name) => !codes.some(({ code }) => code === name))
  return [
    ...described.filter(([, text]) => !text).map(([name]) => `${name}: no description`),
    ...stale.map((name) => `scripts/reference/error-texts.mjs: no code ${name} exists`),
  ]
}

/** The codes and statuses in the table of the library, with the stages that refuse with them. */
function errorCodes(order) {
  const source = readFileSync(join(root, LIBRARY, 'src/core/errors.ts'), 'utf8')
  const [, table] = /const STATUS = \{(.*?)\} as const/s.exec(source)
  return [...table.matchAll(/(\w+): (\d+)/g)].map(([, code, status]) => ({
    code,
    status: Number(status),
    stages: order.filter(({ codes }) => codes.includes(code)).map(({ stage }) => stage),
  }))
}

function entriesOf(folder) {
  const { exports } = JSON.parse(readFileSync(join(root, folder, 'package.json'), 'utf8'))
  return Object.entries(exports)
    .filter(([subpath, target]) => typeof target === 'object' && subpath !== './internal')
    .map(([subpath, { types }]) => ({ subpath, file: join(root, folder, types) }))
}

function importBuilt(path) {
  return import(pathToFileURL(join(root, path)).href)
}
