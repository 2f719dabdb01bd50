// npm run docs:build: builds the documentation site into docs/.vitepress/dist, unless its sources are unchanged.

import { createHash } from 'node:crypto'
import { existsSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { isMain, root, runNode, tools } from '../run-command.mjs'

export const SITE_FOLDER = join(root, 'docs/.vitepress/dist')
const STAMP = join(SITE_FOLDER, '.sources')
/** What the site is built from, besides docs/. */
const OTHER_SOURCES = [
  'ARCHITECTURE.md',
  'CHANGELOG.md',
  'SECURITY.md',
  'VERSIONING.md',
  'package-lock.json',
  'packages/spillway/api.md',
  'packages/spillway/src/core/project.ts',
]

if (isMain(import.meta.url)) {
  const { code, output } = await buildSite()
  process.stdout.write(output)
  process.exitCode = code
}

/** Resolves with `{ code, output }` of the build; `code` is 0 if nothing had to be built. */
export async function buildSite() {
  const sources = hashOfSources()
  if (existsSync(STAMP) && readFileSync(STAMP, 'utf8') === sources) {
    return { code: 0, output: 'the site is up to date\n' }
  }
  const result = await runNode([tools.vitepress, 'build', 'docs'])
  if (result.code === 0) writeFileSync(STAMP, sources)
  return result
}

function hashOfSources() {
  const hash = createHash('sha256')
  const pages = readdirSync(join(root, 'docs'), { recursive: true })
    .filter((name) => !/^\.vitepress[/\\](dist|cache|\.temp)/.test(name))
    .map((name) => `docs/${name}`)
  for (const path of [...pages, ...OTHER_SOURCES].sort()) {
    if (!statSync(join(root, path)).isFile()) continue
    hash
      .update(`${path}\0`)
      .update(readFileSync(join(root, path)))
      .update('\0')
  }
  return hash.digest('hex')
}
