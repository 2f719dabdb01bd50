// npm run docs:build: builds the documentation site into docs/.vitepress/dist, unless its sources are unchanged.

import { createHash } from 'node:crypto'
import { existsSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { isMain, root, runNode, tools } from '../run-command.mjs'
import { setupOrExit } from '../setup.mjs'

export const SITE_FOLDER = join(root, 'docs/.vitepress/dist')
/** Without the TypeScript API, whose pages take most of the time. For tests. */
const FOLDER_WITHOUT_API = join(root, 'docs/.vitepress/cache/without-api')
const GENERATED = /^(\.vitepress[/\\](dist|cache|\.temp)|reference[/\\]api[/\\])/
const STAMP = '.sources'
/** Sources of the site besides docs/. */
const OTHER_SOURCES = [
  'ARCHITECTURE.md',
  'CHANGELOG.md',
  'SECURITY.md',
  'VERSIONING.md',
  'package-lock.json',
  'packages/spillway/src/core/project.ts',
]

if (isMain(import.meta.url)) {
  await setupOrExit({ build: ['packages/gateway'] })
  const { code, output } = await buildSite()
  process.stdout.write(output)
  process.exitCode = code
}

/**
 * Resolves with `{ code, output, folder }` of the build; `code` is 0 if nothing had to be built. The packages have to be
 * built. Without `api`, an up-to-date site is used as it is, and a new one is built without the TypeScript API.
 */
export async function buildSite({ api = true } = {}) {
  const sources = hashOfSources()
  const isCurrent = (folder) => {
    const stamp = join(folder, STAMP)
    return existsSync(stamp) && readFileSync(stamp, 'utf8') === sources
  }
  const current = [SITE_FOLDER, ...(api ? [] : [FOLDER_WITHOUT_API])].find(isCurrent)
  if (current !== undefined) return { code: 0, output: 'the site is up to date\n', folder: current }
  if (api) {
    // TypeDoc takes a second to load.
    const { buildApi } = await import('./build-api.mjs')
    await buildApi()
  }
  const folder = api ? SITE_FOLDER : FOLDER_WITHOUT_API
  const env = { ...process.env, ...(!api && { SPILLWAY_SITE_WITHOUT_API: '1' }) }
  const result = await runNode([tools.vitepress, 'build', 'docs', '--outDir', folder], { env })
  if (result.code === 0) writeFileSync(join(folder, STAMP), sources)
  return { ...result, folder }
}

function hashOfSources() {
  const hash = createHash('sha256')
  const pages = filesIn('docs', (name) => !GENERATED.test(name))
  const declarations = readdirSync(join(root, 'packages')).flatMap((name) =>
    filesIn(`packages/${name}/dist`, (file) => file.endsWith('.d.ts')),
  )
  for (const path of [...pages, ...declarations, ...OTHER_SOURCES].sort()) {
    if (!statSync(join(root, path)).isFile()) continue
    hash
      .update(`${path}\0`)
      .update(readFileSync(join(root, path)))
      .update('\0')
  }
  return hash.digest('hex')
}

function filesIn(folder, isSource) {
  return readdirSync(join(root, folder), { recursive: true })
    .filter(isSource)
    .map((name) => `${folder}/${name}`)
}
