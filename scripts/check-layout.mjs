// npm run check -- layout: sizes of files and folders of the library, and file names without a meaning.

import { readdirSync, readFileSync } from 'node:fs'
import { basename, dirname, join, relative } from 'node:path'
import { isMain, root } from './run-command.mjs'

const MAX_FILES = 16
/** Folders with their own limit. Sub-folders do not count. */
const MAX_FILES_IN = { guard: 10 }
const MAX_LINES = 400
/** Names that a reader cannot guess the contents from. They were renamed and must not return. */
const FORBIDDEN_NAMES = new Set([
  'admitting',
  'gatekeeper',
  'known-refusals',
  'lane-line',
  'later-charge',
  'later-stay',
  'limit-book',
  'machinery',
  'probe-desk',
  'vendor-words',
])

const SRC = join(root, 'packages/spillway/src')

if (isMain(import.meta.url)) {
  const problems = layoutProblems(sourcesIn(SRC))
  for (const problem of problems) process.stdout.write(`${problem}\n`)
  process.exitCode = problems.length > 0 ? 1 : 0
}

/** All files under `folder`, as paths relative to it with their text. */
function sourcesIn(folder) {
  return readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name))
    .map((path) => ({
      path: relative(folder, path).replaceAll('\\', '/'),
      text: readFileSync(path, 'utf8'),
    }))
}

/** Problems in `sources`, a list of `{ path, text }`. */
export function layoutProblems(sources) {
  return [...folderProblems(sources), ...lengthProblems(sources), ...nameProblems(sources)].sort()
}

function folderProblems(sources) {
  const counts = new Map()
  for (const { path } of sources.filter(isSource)) {
    counts.set(dirname(path), (counts.get(dirname(path)) ?? 0) + 1)
  }
  return [...counts]
    .map(([folder, count]) => ({ folder, count, max: MAX_FILES_IN[folder] ?? MAX_FILES }))
    .filter(({ count, max }) => count > max)
    .map(({ folder, count, max }) => `${folder}/ has ${count} files; the limit is ${max}`)
}

function lengthProblems(sources) {
  return sources
    .filter(isSource)
    .map(({ path, text }) => ({ path, lines: text.replace(/\n$/, '').split('\n').length }))
    .filter(({ lines }) => lines > MAX_LINES)
    .map(({ path, lines }) => `${path} has ${lines} lines; the limit is ${MAX_LINES}`)
}

/** Tests count as well: they are named after their source file. */
function nameProblems(sources) {
  return sources
    .filter(({ path }) => FORBIDDEN_NAMES.has(basename(path).split('.')[0]))
    .map(({ path }) => `${path} has a name that was given up; choose one from the glossary`)
}

/** Tests, Lua scripts and generated modules are exempt from the limits. */
function isSource({ path }) {
  return /\.ts$/.test(path) && !/\.(?:test|gen)\.ts$/.test(path)
}
