import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, it, onTestFinished } from 'vitest'
import { testGroups } from './test-groups.mjs'

it('the first line of a test file names its group, and a file without such a line is quick', () => {
  const root = mkdtempSync(join(tmpdir(), 'groups-'))
  onTestFinished(() => rmSync(root, { recursive: true, force: true }))
  for (const folder of ['bench', 'examples', 'packages', 'scripts', 'scripts/node_modules']) {
    mkdirSync(join(root, folder))
  }
  const files = {
    'packages/plain.test.ts': '',
    'packages/late.test.ts': '\n// test-group: io\n',
    'packages/server.test.ts': '// test-group: sockets\n',
    'packages/fuzz.test.ts': '// test-group: sockets, slow\n',
    'scripts/child.test.mjs': '// test-group: io\n',
    'examples/fleet.test.ts': '// test-group: io, slow\n',
    'scripts/helper.mjs': '// test-group: io\n',
    'scripts/node_modules/foreign.test.mjs': '',
  }
  for (const [file, text] of Object.entries(files)) writeFileSync(join(root, file), text)
  const { quick, sockets, io, slow } = testGroups(root)
  expect(quick.toSorted()).toEqual(['packages/late.test.ts', 'packages/plain.test.ts'])
  expect(sockets.toSorted()).toEqual(['packages/fuzz.test.ts', 'packages/server.test.ts'])
  expect(io).toEqual(['examples/fleet.test.ts', 'scripts/child.test.mjs'])
  expect(slow.toSorted()).toEqual(['examples/fleet.test.ts', 'packages/fuzz.test.ts'])
})
