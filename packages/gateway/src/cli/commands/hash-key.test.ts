import { EventEmitter } from 'node:events'
import { describe, expect, it } from 'vitest'
import { loadConfig } from '../../config/load.js'
import { readHidden, type Terminal } from '../read-hidden.js'
import { hashedLine, hashKeyCommand } from './hash-key.js'

const KEY = 'sk-0123456789abcdefghij'

const ignore = () => {}

/** A terminal with simulated typing. */
class Typist extends EventEmitter {
  readonly modes: boolean[] = []
  setRawMode(raw: boolean): void {
    this.modes.push(raw)
  }
  setEncoding(): void {}
  resume(): void {}
  pause(): void {}
  type(...pieces: string[]): this {
    setImmediate(() => {
      for (const piece of pieces) this.emit('data', piece)
    })
    return this
  }
  get terminal(): Terminal {
    return this as unknown as Terminal
  }
}

describe('spillway hash-key', () => {
  it('hash-key prints a line by which the gateway recognises that key and no other', () => {
    const line = hashedLine(`${KEY}\n`, ignore)
    expect(line).toMatch(/^key: sha256:[0-9a-f]{64}$/)
    const written = loadConfig({
      file: 'a.yaml',
      env: { K: KEY, OTHER: `${KEY}x` },
      text: `vendors: { a: { protocol: openai, url: mock } }
callers:
  - ${line}
    user: ann
  - { key: env:OTHER, user: bob }
`,
    })
    const byKey = loadConfig({
      file: 'b.yaml',
      env: { K: KEY },
      text: 'vendors: { a: { protocol: openai, url: mock } }\ncallers: [{ key: env:K, user: ann }]\n',
    })
    expect(written.callers?.[0]).toEqual(byKey.callers?.[0])
    expect(written.callers?.[1]?.keyHash).not.toBe(byKey.callers?.[0]?.keyHash)
  })

  it('hash-key rejects arguments without repeating them', async () => {
    const refused = hashKeyCommand.run([KEY])
    await expect(refused).rejects.toThrow('a key must not be an argument')
    await expect(refused).rejects.not.toThrow(KEY)
  })

  it('hash-key prompts at a terminal and does not echo the input', async () => {
    const typist = new Typist().type('sk-0123456789', 'abcX\u007fdefghij', '\r')
    let shown = ''
    const write = (text: string) => {
      shown += text
    }
    expect(await readHidden('Key: ', typist.terminal, { write })).toBe(KEY)
    expect(shown).toBe('Key: \n')
    expect(typist.modes).toEqual([true, false])
    expect(typist.listenerCount('data')).toBe(0)
  })

  it('hash-key restores the terminal after Ctrl-C', async () => {
    const typist = new Typist().type('sk-01', '\u0003')
    const answer = readHidden('Key: ', typist.terminal, { write: ignore })
    await expect(answer).rejects.toThrow('no input')
    expect(typist.modes).toEqual([true, false])
  })

  it.each([
    ['', 'no key on standard input'],
    [' \n', 'no key on standard input'],
    ['one two', 'one line of visible ASCII'],
    ['one\ntwo', 'one line of visible ASCII'],
    ['ключ', 'one line of visible ASCII'],
  ])('hash-key rejects the key %j', (given, message) => {
    expect(() => hashedLine(given, ignore)).toThrow(message)
  })

  it('hash-key warns of a key that can be guessed from its hash', () => {
    const warnings: string[] = []
    hashedLine('secret', (text) => warnings.push(text))
    expect(warnings).toEqual([expect.stringContaining('can be guessed')])
    expect(warnings.join()).not.toContain('secret')
  })
})
