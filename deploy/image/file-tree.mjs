// Digests of file trees: paths, types, permissions, owners, link targets and contents. Times are left out.

import { createHash } from 'node:crypto'
import { lstatSync, readdirSync, readFileSync, readlinkSync } from 'node:fs'
import { join } from 'node:path'

/**
 * @param {string} root
 * @param {string[]} except paths below the root that are left out, such as `tmp`
 * @returns {Map<string, string>} one line for each file, by its path
 */
export function fileTree(root, except = []) {
  const lines = new Map()
  for (const path of readdirSync(root, { recursive: true }).sort()) {
    if (except.some((folder) => path.startsWith(`${folder}/`))) continue
    const stat = lstatSync(join(root, path))
    const content = contentOf(join(root, path), stat)
    lines.set(path, `${stat.mode.toString(8)} ${stat.uid}:${stat.gid} ${content}`)
  }
  return lines
}

/** One digest for the whole tree. */
export function digestOf(tree) {
  const hash = createHash('sha256')
  for (const [path, line] of tree) hash.update(`${path} ${line}\n`)
  return hash.digest('hex')
}

/** Paths that only one of two trees has, or that differ. */
export function changedPaths(before, after) {
  const paths = new Set([...before.keys(), ...after.keys()])
  return [...paths].filter((path) => before.get(path) !== after.get(path))
}

function contentOf(path, stat) {
  if (stat.isSymbolicLink()) return readlinkSync(path)
  if (!stat.isFile()) return ''
  return createHash('sha256').update(readFileSync(path)).digest('hex')
}
