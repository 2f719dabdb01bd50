// test-group: io
import { chmodSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, describe, expect, it } from 'vitest'
import { changedPaths, digestOf, fileTree } from '../deploy/image/file-tree.mjs'

const root = mkdtempSync(join(tmpdir(), 'file-tree-'))
afterAll(() => rmSync(root, { recursive: true }))

describe('file trees of images', () => {
  it('a changed content, a new file and another permission change the digest; files in /tmp do not', () => {
    mkdirSync(join(root, 'app'))
    mkdirSync(join(root, 'tmp'))
    writeFileSync(join(root, 'app/a'), '1')
    writeFileSync(join(root, 'app/b'), '1')
    const before = fileTree(root, ['tmp'])
    writeFileSync(join(root, 'app/a'), '1')
    writeFileSync(join(root, 'tmp/c'), '1')
    expect(digestOf(fileTree(root, ['tmp']))).toBe(digestOf(before))
    writeFileSync(join(root, 'app/a'), '2')
    chmodSync(join(root, 'app/b'), 0o600)
    writeFileSync(join(root, 'app/d'), '1')
    const after = fileTree(root, ['tmp'])
    expect(changedPaths(before, after)).toEqual(['app/a', 'app/b', 'app/d'])
    expect(digestOf(after)).not.toBe(digestOf(before))
  })
})
