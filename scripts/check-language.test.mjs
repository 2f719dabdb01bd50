import { readFileSync } from 'node:fs'
import { describe, expect, it } from 'vitest'
import { findOldWords, findPhrases } from './check-language.mjs'

describe('check-language', () => {
  it('a vague phrase is reported with its file and line', () => {
    const phrase = ['in', 'vain'].join(' ')
    expect(findPhrases('docs/a.md', `A call waits.\nIt waits ${phrase}.\n`)).toEqual([
      `docs/a.md:2: "${phrase}" in: It waits ${phrase}.`,
    ])
  })

  it('plain sentences pass', () => {
    expect(findPhrases('docs/a.md', 'The pod refuses the call with SHED.\n')).toEqual([])
  })

  it('an allowed line is allowed in its own file only', () => {
    const line = `  ${'any'}body: 'public',`
    expect(findPhrases('packages/spillway/src/http/operator-access.ts', line)).toEqual([])
    expect(findPhrases('packages/spillway/src/http/other.ts', line)).toHaveLength(1)
  })

  it('old words of the glossary are reported in file names and declared names', () => {
    const text = 'class CallRide { #rooms = 1; wait(gate: number) { const news = gate } }\n'
    expect(findOldWords('packages/a/src/waiting-room.ts', text)).toEqual([
      'packages/a/src/waiting-room.ts: "room" in the name waiting-room; use "queue or headroom"',
      'packages/a/src/waiting-room.ts: "ride" in the name CallRide; use "round trip"',
      'packages/a/src/waiting-room.ts: "room" in the name rooms; use "queue or headroom"',
      'packages/a/src/waiting-room.ts: "gate" in the name gate; use "stage"',
      'packages/a/src/waiting-room.ts: "news" in the name news; use "report or change"',
    ])
  })

  it('a longer word that contains an old word passes, and so does a member that is only used', () => {
    const text = 'const headroom = vendor.room\n'
    expect(findOldWords('packages/a/src/headroom.ts', text)).toEqual([])
  })

  it('an old word is allowed where it means something else', () => {
    const text = 'const tripCause = 1\n'
    expect(findOldWords('packages/spillway/src/store/breaker/a.ts', text)).toEqual([])
    expect(findOldWords('packages/spillway/src/store/queue/a.ts', text)).toHaveLength(1)
  })
})

describe('dictionary of the spell checker', () => {
  it('the dictionary is sorted, in lower case and without duplicates', () => {
    const text = readFileSync(new URL('dictionary.txt', import.meta.url), 'utf8')
    const words = text.trimEnd().split('\n')
    expect(words).toEqual([...new Set(words.map((word) => word.toLowerCase()))].sort())
  })
})
