// Builds the dashboard: packages/dashboard/page becomes one HTML page, with its script and style inside, beside the
// server's compiled files. Skipped while its sources are unchanged. Prints to stderr only.

import { createHash } from 'node:crypto'
import {
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  writeFileSync,
} from 'node:fs'
import { dirname, join } from 'node:path'
import { isMain, root } from './run-command.mjs'

const SOURCE = join(root, 'packages/dashboard/page')
export const PAGE = join(root, 'packages/dashboard/dist/page.html')

/** The page contains the hash of its sources, so no second file has to agree with it. */
const stampOf = (hash) => `<!-- built from ${hash} -->`

export async function buildPage(say = () => {}) {
  const stamp = stampOf(sourceHash())
  if (existsSync(PAGE) && readFileSync(PAGE, 'utf8').includes(stamp)) return
  say('building the dashboard …')
  const { build } = await import('vite')
  const { output } = await build({
    root: SOURCE,
    logLevel: 'error',
    build: { write: false, modulePreload: { polyfill: false }, assetsInlineLimit: 1e9 },
  })
  const page = inlined(output)
  mkdirSync(dirname(PAGE), { recursive: true })
  // Another process may build or read it at the same time.
  const draft = `${PAGE}.${process.pid}`
  writeFileSync(draft, `${page.trimEnd()}\n${stamp}\n`)
  renameSync(draft, PAGE)
}

/** One page out of Vite's page, script and style. */
function inlined(output) {
  const files = new Map(output.map((each) => [each.fileName, each.code ?? String(each.source)]))
  const page = files.get('index.html')
  if (page === undefined || files.size > 3) {
    throw new Error(`The dashboard should be a page, a script and a style: ${[...files.keys()]}`)
  }
  // Functions, because `$&` and similar have a special meaning in a replacement string.
  return page
    .replace(/<link rel="stylesheet"[^>]*href="\/?([^"]+)"[^>]*>/g, (_, name) => {
      return `<style>${files.get(name)}</style>`
    })
    .replace(/<script type="module"[^>]*src="\/?([^"]+)"[^>]*><\/script>/g, (_, name) => {
      // Text that would end the element early occurs only in strings, where this escape has the same meaning.
      return `<script type="module">${files.get(name).trim().replaceAll('</script', '<\\/script')}</script>`
    })
}

function sourceHash() {
  const hash = createHash('sha256')
  const files = ['index.html', 'tsconfig.json', 'vite.config.ts', ...filesIn('src')]
  for (const path of files.sort()) hash.update(`${path}\n`).update(readFileSync(join(SOURCE, path)))
  // Versions of the tools, and the hash of the build script.
  for (const path of ['package-lock.json', 'scripts/build-page.mjs']) {
    hash.update(readFileSync(join(root, path)))
  }
  return hash.digest('hex')
}

function filesIn(folder) {
  return readdirSync(join(SOURCE, folder), { recursive: true, withFileTypes: true })
    .filter((each) => each.isFile())
    .map((each) => join(each.parentPath, each.name).slice(SOURCE.length + 1))
}

if (isMain(import.meta.url)) await buildPage((line) => process.stderr.write(`${line}\n`))
