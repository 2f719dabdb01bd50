// npm run check -- paths: every file and folder that ARCHITECTURE.md names exists. Readers use that page as a map of
// the repository, so its names must be current.

import { readdirSync, readFileSync } from 'node:fs'
import { join, posix, relative } from 'node:path'
import { isMain, root } from './run-command.mjs'

const PAGE = 'ARCHITECTURE.md'
const SKIPPED_FOLDERS = new Set(['.git', 'coverage', 'dist', 'node_modules'])
const CODE_BLOCK = /^```.*?^```/gms
const CODE = /`([^`\n]+)`/g
const LINK = /\]\(([^)\s]+)\)/g
const PATH = /^[\w.*-]+(?:\/[\w.*-]+)*\/?$/
const FILE_ENDING = /\.(?:[cm]?[jt]s|tsx|lua|md|jsonc?|ya?ml|css|html)$/
const MEDIA_TYPE = /^(?:application|text|image)\//

if (isMain(import.meta.url)) {
  const problems = pathProblems(readFileSync(join(root, PAGE), 'utf8'), {
    paths: pathsIn(root),
    entries: entriesOf(join(root, 'packages/spillway/package.json')),
  })
  for (const problem of problems) process.stdout.write(`${problem}\n`)
  process.exitCode = problems.length > 0 ? 1 : 0
}

/** All files and folders under `folder`, relative to it; folders end in a slash. */
function pathsIn(folder) {
  const paths = []
  const visit = (directory) => {
    for (const entry of readdirSync(directory, { withFileTypes: true })) {
      if (SKIPPED_FOLDERS.has(entry.name)) continue
      const path = join(directory, entry.name)
      const name = relative(folder, path).replaceAll('\\', '/')
      paths.push(entry.isDirectory() ? `${name}/` : name)
      if (entry.isDirectory()) visit(path)
    }
  }
  visit(folder)
  return paths
}

/** The specifiers a package can be imported by, such as `spillway/redis`. */
function entriesOf(manifest) {
  const { name, exports } = JSON.parse(readFileSync(manifest, 'utf8'))
  return Object.keys(exports).map((entry) => posix.join(name, entry))
}

/**
 * The paths in `markdown` that do not exist. Links are relative to the root. Paths in backticks and in
 * code blocks may leave out leading folders: `queue/deque.ts` is any file whose path ends like that.
 * Words without a slash or a known file ending are no paths.
 */
export function pathProblems(markdown, { paths, entries }) {
  const blocks = markdown.match(CODE_BLOCK) ?? []
  const prose = markdown.replace(CODE_BLOCK, '')
  const linked = [...prose.matchAll(LINK)]
    .map(([, target]) => target.replace(/#.*$/, ''))
    .filter((target) => target !== '' && !/^[a-z]+:/.test(target))
  const named = [
    ...[...prose.matchAll(CODE)].map(([, code]) => code).filter(isPath),
    ...blocks.flatMap((block) => block.split(/[\s(),;]+/)).filter(isPathInBlock),
  ]
  const missing = [
    ...linked.filter((path) => !paths.includes(path) && !paths.includes(`${path}/`)),
    ...named.filter((path) => !entries.includes(path) && !hasEnding(paths, path)),
  ]
  return [...new Set(missing)].map((path) => `${PAGE} names ${path}, which does not exist`)
}

function isPath(code) {
  return PATH.test(code) && !MEDIA_TYPE.test(code) && (code.includes('/') || FILE_ENDING.test(code))
}

/** A diagram has words such as `and/or`, so folders need their slash at the end. */
function isPathInBlock(word) {
  return isPath(word) && (word.endsWith('/') || FILE_ENDING.test(word))
}

/** `*` matches a part of one name. */
function hasEnding(paths, path) {
  const literal = path.replace(/[.+?^${}()|[\]\\]/g, '\\$&').replaceAll('*', '[^/]*')
  const ending = new RegExp(`(?:^|/)${literal}/?$`)
  return paths.some((each) => ending.test(each))
}
