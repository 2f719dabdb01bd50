import { describe, expect, it } from 'vitest'
import { fc } from '../../../../spillway/test/fast-check.js'
import { FieldNames } from '../../protocols/protocol.js'
import { Utf8Check } from '../parse-request.js'
import { ByteList } from './byte-list.js'
import { JsonFieldReader } from './json-fields.js'
import { withFields } from './rewrite-body.js'

describe('ByteList', () => {
  it('the bytes are those that were pushed, whatever the sizes of the chunks', () => {
    const size = fc.oneof(fc.nat(40), fc.integer({ min: 8_000, max: 17_000 }))
    fc.assert(
      fc.property(fc.array(size, { maxLength: 30 }), (sizes) => {
        const chunks = sizes.map((bytes, index) => Buffer.alloc(bytes, index + 1))
        const list = ByteList.of(...chunks)
        const whole = Buffer.concat(chunks)
        expect(list.length).toBe(whole.length)
        expect(list.toBuffer().equals(whole)).toBe(true)
        expect(Buffer.concat(list.chunks as Buffer[]).equals(whole)).toBe(true)
      }),
      { numRuns: 100 },
    )
  })

  it('small chunks are joined in blocks of 16 KiB, so that a body sent byte by byte takes few', () => {
    const list = new ByteList()
    for (let i = 0; i < 16_384 * 2 + 1; i++) list.push(Buffer.from([i & 0xff]))
    expect(list.chunks.map(({ length }) => length)).toEqual([1, 16_384, 16_384])
  })

  it('a large chunk and the only chunk are not copied', () => {
    const [first, large] = [Buffer.from('first'), Buffer.alloc(8_192)]
    const list = ByteList.of(first, large)
    expect(list.chunks[0]).toBe(first)
    expect(list.chunks[1]).toBe(large)
    expect(ByteList.of(first).toBuffer()).toBe(first)
  })

  it('a chunk that is changed after it was copied does not change the list', () => {
    const small = Buffer.from('small')
    const list = ByteList.of(Buffer.from('first '), small)
    small.fill('x')
    expect(list.toBuffer().toString()).toBe('first small')
  })

  it('edits replace, insert and delete bytes across chunks', () => {
    const text = 'abcdefghij'
    fc.assert(
      fc.property(
        fc.uniqueArray(fc.nat(text.length), { maxLength: 6 }),
        fc.array(fc.constantFrom('', 'X', 'YY€'), { minLength: 3, maxLength: 3 }),
        fc.integer({ min: 1, max: 10 }),
        (points, texts, size) => {
          const sorted = [...points].sort((one, other) => one - other)
          const edits = []
          for (let i = 0; i + 1 < sorted.length; i += 2) {
            edits.push({ start: sorted[i]!, end: sorted[i + 1]!, text: texts[i / 2]! })
          }
          let expected = ''
          let from = 0
          for (const { start, end, text: inserted } of edits) {
            expected += text.slice(from, start) + inserted
            from = end
          }
          const chunks = text.match(new RegExp(`.{1,${size}}`, 'g')) ?? []
          const list = ByteList.of(...chunks.map((chunk) => Buffer.from(chunk)))
          expect(list.edited(edits).toBuffer().toString()).toBe(expected + text.slice(from))
          expect(list.toBuffer().toString()).toBe(text)
        },
      ),
    )
  })
})

describe('fields that the gateway sets in a body', () => {
  const rewrite = (text: string, replacements: Record<string, unknown>) => {
    const names = new FieldNames(['model', 'stream_options'], [])
    const bytes = ByteList.of(Buffer.from(text))
    const reader = new JsonFieldReader(names, {
      onText() {},
      onObject() {},
      onScalar() {},
      onPart() {},
      beginningLength: 0,
      beginningPattern: /^/,
    })
    for (const chunk of bytes.chunks) reader.push(chunk)
    return withFields(bytes, reader.end(), replacements).toBuffer().toString()
  }

  it('a field that is present is replaced and the other bytes stay as they were', () => {
    const text = ' { "a" : 1.0, "model":"old" , "b":"\\u0061" }'
    expect(rewrite(text, { model: 'new' })).toBe(' { "a" : 1.0, "model":"new" , "b":"\\u0061" }')
  })

  it('fields that are missing are added in front of the others', () => {
    expect(rewrite('{}', { model: 'new', x: 1 })).toBe('{"model":"new","x":1}')
    expect(rewrite('{"a":1}', { model: 'new' })).toBe('{"model":"new","a":1}')
  })

  it('fields are replaced and added in one pass, in any order', () => {
    const text = '{"stream_options":{},"model":"old"}'
    expect(rewrite(text, { x: 1, model: 'new', stream_options: { y: true } })).toBe(
      '{"x":1,"stream_options":{"y":true},"model":"new"}',
    )
  })
})

describe('Utf8Check', () => {
  const isValid = (bytes: Buffer, size: number) => {
    const check = new Utf8Check()
    for (let at = 0; at < bytes.length; at += size) {
      if (!check.push(bytes.subarray(at, at + size))) return false
    }
    return check.end()
  }

  it('text is valid in chunks of any size, also when a chunk ends inside a character', () => {
    const bytes = Buffer.from('aé€😀\u0800\uffff\u{10ffff}z')
    for (let size = 1; size <= bytes.length; size++) expect(isValid(bytes, size)).toBe(true)
  })

  it('random bytes are valid exactly when a strict decoder accepts them', () => {
    const decoder = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })
    const decodes = (bytes: Buffer) => {
      try {
        decoder.decode(bytes)
        return true
      } catch {
        return false
      }
    }
    const byte = fc.constantFrom(0x41, 0x80, 0xbf, 0xc2, 0xe0, 0xa0, 0xed, 0xef, 0xf0, 0x90, 0xf4)
    const part = fc.oneof(
      fc.array(byte, { maxLength: 3 }).map((bytes) => Buffer.from(bytes)),
      fc.constantFrom('é', '€', '😀', 'a').map((text) => Buffer.from(text)),
    )
    fc.assert(
      fc.property(
        fc.array(part, { maxLength: 4 }),
        fc.integer({ min: 1, max: 5 }),
        (parts, size) => {
          const bytes = Buffer.concat(parts)
          expect(isValid(bytes, size)).toBe(decodes(bytes))
        },
      ),
      { numRuns: 1_000 },
    )
  })
})
