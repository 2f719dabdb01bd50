// Splits the test files into two groups. A file that starts with the line `// test-group: io` opens
// sockets or starts processes. Every other file is quick: scripts/forbid-io.mjs keeps it that way.

import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'

const MARKER = '// test-group: io\n'
const TEST_FILE = /\.test\.(ts|mjs)$/
const IGNORED = new Set(['node_modules', 'dist'])
const FOLDERS = ['examples', 'packages', 'scripts']

/**
 * Paths relative to `root`.
 * @param {string} root
 * @returns {{ quick: string[], io: string[] }}
 */
export function testGroups(root) {
  const groups = { quick: [], io: [] }
  for (const file of FOLDERS.flatMap((folder) => testFiles(root, folder))) {
    const text = readFileSync(join(root, file), 'utf8')
    groups[text.startsWith(MARKER) ? 'io' : 'quick'].push(file)
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
