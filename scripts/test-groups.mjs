// Splits the test files into three groups, by their first line. A file that starts with `// test-group: io` starts
// processes or reads what was built. With `// test-group: sockets` it only opens sockets or starts threads. Every other
// file is quick. The setup files scripts/forbid-io.mjs and scripts/forbid-processes.mjs enforce this.
// `// test-group: io, slow` marks the files that take longest. They start first, so that the run does not end with one
// of them alone.

import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'

const MARKER = /^\/\/ test-group: (io|sockets)(, slow)?\n/
const TEST_FILE = /\.test\.(ts|mjs)$/
const IGNORED = new Set(['node_modules', 'dist'])
const FOLDERS = ['bench', 'examples', 'packages', 'scripts']

/**
 * Paths relative to `root`. `slow` files are in one of the other groups as well.
 * @param {string} root
 * @returns {{ quick: string[], sockets: string[], io: string[], slow: string[] }}
 */
export function testGroups(root) {
  const groups = { quick: [], sockets: [], io: [], slow: [] }
  for (const file of FOLDERS.flatMap((folder) => testFiles(root, folder))) {
    const [, group = 'quick', slow] = MARKER.exec(readFileSync(join(root, file), 'utf8')) ?? []
    groups[group].push(file)
    if (slow !== undefined) groups.slow.push(file)
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
