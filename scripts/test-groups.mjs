// Splits the test files into two groups. A file that starts with the line `// test-group: io` opens
// sockets, starts processes or reads what was built. Every other file is quick, which
// scripts/forbid-io.mjs enforces.
// `// test-group: io, slow` marks the io files that take longest. They start first, so that the run
// does not end with one of them alone.

import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'

const MARKER = /^\/\/ test-group: io(, slow)?\n/
const TEST_FILE = /\.test\.(ts|mjs)$/
const IGNORED = new Set(['node_modules', 'dist'])
const FOLDERS = ['examples', 'packages', 'scripts']

/**
 * Paths relative to `root`. `slow` is a part of `io`.
 * @param {string} root
 * @returns {{ quick: string[], io: string[], slow: string[] }}
 */
export function testGroups(root) {
  const groups = { quick: [], io: [], slow: [] }
  for (const file of FOLDERS.flatMap((folder) => testFiles(root, folder))) {
    const marker = MARKER.exec(readFileSync(join(root, file), 'utf8'))
    groups[marker === null ? 'quick' : 'io'].push(file)
    if (marker?.[1] !== undefined) groups.slow.push(file)
  }
  return groups
}

function testFiles(root, folder) {
  return readdirSync(join(root, folder), { withFileTypes: true }).flatMap((entry) => {
    const path = `${folder}/${entry.name}`
    if (entry.isDirectory()) return IGNORED.has(entry.name) ? [] : testFiles(root, path)
    return TEST_FILE.test(entry.name) ? [path] : []
  })
}
