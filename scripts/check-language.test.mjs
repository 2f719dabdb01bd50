import { describe, expect, it } from 'vitest'
import { findOldWords, findPhrases } from './check-language.mjs'

describe('check-language', () => {
  it('a vague phrase is reported with its file and line', () => {
    const text = 'A call waits.\nIt waits in vain.\n'
    expect(findPhrases('docs/a.md', text)).toEqual(['docs/a.md:2: "in vain" in: It waits in vain.'])
  })

  it('plain sentences pass', () => {
    expect(findPhrases('docs/a.md', 'The pod refuses the call with SHED.\n')).toEqual([])
  })

  it('an allowed line is allowed in its own file only', () => {
    const line = "  anybody: 'public',"
    expect(findPhrases('packages/spillway/src/http/operator-access.ts', line)).toEqual([])
    expect(findPhrases('packages/spillway/src/http/other.ts', line)).toHaveLength(1)
  })

  it('old words of the glossary are reported in file names and exported names', () => {
    expect(findOldWords('packages/a/src/waiting-room.ts', 'export class CallRide {}\n')).toEqual([
      'packages/a/src/waiting-room.ts: "room" in the name waiting-room; use "queue"',
      'packages/a/src/waiting-room.ts: "ride" in the name CallRide; use "round trip"',
    ])
  })

  it('a longer word that contains an old word passes', () => {
    expect(findOldWords('packages/a/src/headroom.ts', 'export const headroom = 1\n')).toEqual([])
  })
})
