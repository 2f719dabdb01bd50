// test-group: io

import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, it, onTestFinished } from 'vitest'
import { missingComments } from './api-comments.mjs'

function missingIn(text) {
  const folder = mkdtempSync(join(tmpdir(), 'api-comments-'))
  onTestFinished(() => rmSync(folder, { recursive: true }))
  const file = join(folder, 'index.d.ts')
  writeFileSync(file, text)
  return missingComments([{ subpath: 'package', file }])
}

it('an exported function, type or member without a JSDoc comment is listed', () => {
  const text = `
    export declare function bare(): void
    /** A function. */
    export declare function described(): void
    /** Options. */
    export interface Options {
      // Not JSDoc.
      size?: number
      /** A part. */
      part?: { nested: number }
    }
    export type Name = string
  `
  expect(missingIn(text)).toEqual([
    'package: Name',
    'package: Options.part.nested',
    'package: Options.size',
    'package: bare',
  ])
})

it('private members, constructors and overloads of a described method need no comment', () => {
  const text = `
    /** A class. */
    export declare class Thing {
      #secret
      private hidden
      constructor(size: number)
      /** Runs. */
      run(): void
      run(size: number): void
    }
  `
  expect(missingIn(text)).toEqual([])
})
