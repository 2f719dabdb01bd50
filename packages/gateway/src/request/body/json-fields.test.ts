import { describe, expect, it } from 'vitest'
import { fc } from '../../../../spillway/test/fast-check.js'
import { FieldNames } from '../../protocols/protocol.js'
import { JsonFieldReader } from './json-fields.js'
import type { ContentVisitor, JsonObject } from './json-object.js'

const NAMES = new FieldNames(['model', 'stream', 'n'], ['messages', 'prompt'])

/** Writes down what the reader finds inside `messages` and `prompt`. */
class Log implements ContentVisitor {
  readonly beginningLength = 8
  readonly beginningPattern = /^[a-z]*$/
  readonly entries: unknown[] = []

  onText(bytes: number, beginning: string): void {
    this.entries.push([bytes, beginning])
  }

  onObject(): void {
    this.entries.push('object')
  }

  onScalar(): void {
    this.entries.push('scalar')
  }

  onPart(): void {}
}

function read(text: string | Buffer, chunkBytes = Infinity): { json: JsonObject; log: unknown[] } {
  const log = new Log()
  const reader = new JsonFieldReader(NAMES, log)
  const bytes = Buffer.from(text)
  const step = Math.min(chunkBytes, Math.max(1, bytes.length))
  for (let at = 0; at < bytes.length; at += step) reader.push(bytes.subarray(at, at + step))
  return { json: reader.end(), log: log.entries }
}

const GROUPED = new FieldNames(['model', 'config.n', 'config.most'], ['messages'])

function readGrouped(text: string, chunkBytes: number): Record<string, unknown> {
  const reader = new JsonFieldReader(GROUPED, new Log())
  const bytes = Buffer.from(text)
  for (let at = 0; at < bytes.length; at += chunkBytes) {
    reader.push(bytes.subarray(at, at + chunkBytes))
  }
  return Object.fromEntries([...reader.end().fields].map(([name, { value }]) => [name, value]))
}

const valuesIn = (text: string, chunkBytes?: number) =>
  Object.fromEntries(
    [...read(text, chunkBytes).json.fields].map(([name, { value }]) => [name, value]),
  )

describe('reading fields of a JSON body', () => {
  it.each([1, 2, 3, 7, Infinity])(
    'chosen fields are found with their positions in chunks of %d bytes',
    (chunkBytes) => {
      const text = ' {"x":{"model":"inner"}, "model" : "gpt-€\\n", "n":-1.5e2 ,"stream":true}\n'
      const { json } = read(text, chunkBytes)
      const bytes = Buffer.from(text)
      const found = [...json.fields].map(([name, { value, start, end }]) => [
        name,
        value,
        bytes.subarray(start, end).toString(),
      ])
      expect(found).toEqual([
        ['model', 'gpt-€\n', '"gpt-€\\n"'],
        ['n', -150, '-1.5e2'],
        ['stream', true, 'true'],
      ])
      expect([json.start, json.isEmpty]).toEqual([2, false])
    },
  )

  it('a wanted field may be an object, an array or null', () => {
    expect(valuesIn('{"n":{"a":[1,{}]},"model":[],"stream":null}', 1)).toEqual({
      n: { a: [1, {}] },
      model: [],
      stream: null,
    })
  })

  it('an object without fields is empty, and one with any field is not', () => {
    expect(read('{ }').json.isEmpty).toBe(true)
    expect(read('{"other":1}').json.isEmpty).toBe(false)
  })

  it('random text is accepted exactly when JSON.parse reads an object from it', () => {
    const piece = fc.constantFrom(
      ...['{', '}', '[', ']', ',', ':', '"a"', '"model"', '"b', '"', '\\', '\\u00', '\\n', 'e'],
      ...['0', '01', '-', '-1', '1.', '1.5', '1e', '1E+2', 'true', 'nul', 'null', ' ', '\n', '\v'],
      ...['{}', '[]', '{"a":', '[1,', '"x":1', '\u0001', '\x7f', '\\ud83d'],
    )
    const messy = fc.array(piece, { maxLength: 12 }).map((pieces) => pieces.join(''))
    const valid = fc.json().map((json) => `{"a":${json}}`)
    const isObject = (text: string) => {
      try {
        const value: unknown = JSON.parse(text)
        return typeof value === 'object' && value !== null && !Array.isArray(value)
      } catch {
        return false
      }
    }
    const isAccepted = (text: string, chunkBytes: number) => {
      try {
        read(text, chunkBytes)
        return true
      } catch {
        return false
      }
    }
    // Names that occur twice are refused, which JSON.parse accepts.
    const hasTwo = (text: string) => text.split('"model"').length > 2
    let accepted = 0
    fc.assert(
      fc.property(
        fc.oneof(
          messy,
          messy.map((text) => `{${text}}`),
          valid,
        ),
        (text) => {
          if (hasTwo(text)) return
          const expected = isObject(text)
          if (expected) accepted++
          for (const chunkBytes of [1, 3, Infinity]) {
            expect(isAccepted(text, chunkBytes)).toBe(expected)
          }
        },
      ),
      { numRuns: 1_000 },
    )
    expect(accepted).toBeGreaterThan(100)
  })

  it.each([
    ['', 'the body is empty'],
    ['[]', 'the body does not begin with {'],
    ['\uFEFF{}', 'the body does not begin with {'],
    ['{"a":1', 'the body is incomplete'],
    ['{"a":1}x', 'the body is not valid JSON at byte 7'],
    ['{"a":1,}', 'the body is not valid JSON at byte 7'],
    ['{"a" 1}', 'the body is not valid JSON at byte 5'],
    ['{"a":"\\x"}', 'the body is not valid JSON at byte 7'],
    ['{"a":"\\u00g0"}', 'the body is not valid JSON at byte 10'],
    ['{"a":"\n"}', 'the body is not valid JSON at byte 6'],
    ['{"a":[1}', 'the body is not valid JSON at byte 7'],
    ['{"a":01}', 'the body is not valid JSON at byte 7'],
    ['{"model":"a","model":"b"}', 'the field "model" occurs twice'],
    ['{"model":"a","mod\\u0065l":"b"}', 'the field "model" occurs twice'],
    ['{"Model":"a"}', 'the field "model" is in another case'],
    ['{"meſſages":[]}', 'the field "messages" is in another case'],
  ])('the body %j is refused: %s', (text, message) => {
    expect(() => read(text)).toThrow(message)
    expect(() => read(text, 1)).toThrow(message)
  })

  it('fields that were not chosen may occur twice and in any case', () => {
    expect(valuesIn('{"x":1,"x":2,"X":3,"n":4}')).toEqual({ n: 4 })
  })

  it('an object may have 10,000 fields and no more, whether they were chosen or not', () => {
    const withFields = (count: number) =>
      `{"model":"gpt",${Array.from({ length: count - 1 }, (_, i) => `"x${i % 3}":1`).join()}}`
    expect(valuesIn(withFields(10_000))).toEqual({ model: 'gpt' })
    expect(() => read(withFields(10_001))).toThrow('the body has more than 10000 fields')
  })

  it('nesting is allowed up to 200 levels', () => {
    const nested = (depth: number) => `{"a":${'['.repeat(depth - 1)}${']'.repeat(depth - 1)}}`
    expect(read(nested(200)).json.isEmpty).toBe(false)
    expect(() => read(nested(201))).toThrow('nested deeper than 200 levels')
  })

  it.each([1_000, Infinity])(
    'a wanted value, a name and a number have at most 4,096 bytes, in chunks of %d',
    (chunkBytes) => {
      const value = (bytes: number) => `{"model":"${'m'.repeat(bytes - 2)}"}`
      const name = (bytes: number) => `{"${'n'.repeat(bytes - 2)}":1}`
      const number = (bytes: number) => `{"a":${'1'.repeat(bytes)}}`
      for (const make of [value, name, number]) read(make(4_096), chunkBytes)
      expect(() => read(value(4_097), chunkBytes)).toThrow('the field "model" is longer than 4096')
      expect(() => read(name(4_097), chunkBytes)).toThrow('a field name is longer than 4096 bytes')
      expect(() => read(number(4_097), chunkBytes)).toThrow('not valid JSON')
      expect(read(`{"a":"${'a'.repeat(9_000)}"}`, chunkBytes).json.isEmpty).toBe(false)
    },
  )
})

describe('content of a JSON body', () => {
  it.each([1, 2, Infinity])(
    'texts, objects and scalars inside content fields are visited in order, in chunks of %d',
    (chunkBytes) => {
      const text =
        '{"other":["no"],"messages":[{"role":"user","content":"hello you"},7,null,[true]],"prompt":"abc"}'
      expect(read(text, chunkBytes).log).toEqual([
        'object',
        [4, 'user'],
        [9, ''],
        'scalar',
        'scalar',
        'scalar',
        [3, 'abc'],
      ])
    },
  )

  it('a content field that is null has no content', () => {
    expect(read('{"messages":null,"prompt":[null]}').log).toEqual(['scalar'])
  })

  it('the length of a text is that of its UTF-8 form, with escapes decoded', () => {
    const lengths = (text: string) => read(`{"prompt":["${text}"]}`).log.map((each) => each)
    expect(lengths('\\u0041\\u00e9\\u20ac')).toEqual([[6, '']])
    expect(lengths('\\ud83d\\ude00')).toEqual([[4, '']])
    // A lone half is three bytes, and a half after other text does not complete a pair.
    expect(lengths('\\ud83d\\ud83d')).toEqual([[6, '']])
    expect(lengths('\\ud83da\\ude00')).toEqual([[7, '']])
    expect(lengths('\\ude00')).toEqual([[3, '']])
    expect(lengths('\\u007f\\u0080\\u07ff\\u0800')).toEqual([[8, '']])
    expect(lengths('😀é')).toEqual([[6, '']])
    expect(lengths('\\n\\t\\"\\\\\\/')).toEqual([[5, '']])
  })

  it('names of objects inside content are not part of the beginning of a text', () => {
    expect(read('{"messages":["ab",{"c":"d"}],"prompt":"e"}').log).toEqual([
      [2, 'ab'],
      'object',
      [1, 'd'],
      [1, 'e'],
    ])
  })

  it('the beginning of a text is passed up to its longest length, over chunks and escapes', () => {
    const beginning = (text: string, chunkBytes: number) =>
      (read(`{"prompt":"${text}"}`, chunkBytes).log[0] as [number, string])[1]
    for (const chunkBytes of [1, 3, Infinity]) {
      expect(beginning('abcdefghij', chunkBytes)).toBe('abcdefgh')
      expect(beginning('ab\\u0063d', chunkBytes)).toBe('abcd')
      expect(beginning('abcdefghIJ', chunkBytes)).toBe('abcdefgh')
    }
    expect(beginning('abC', Infinity)).toBe('')
    expect(beginning('ab\\u0043d', Infinity)).toBe('')
  })

  it('the end of a long text and control characters in it are found at every alignment', () => {
    const memory = Buffer.alloc(1_024)
    for (let offset = 0; offset < 4; offset++) {
      for (let length = 250; length < 275; length++) {
        const text = `${'é~'.repeat(100)}${'\x7f'.repeat(length - 200)}`
        const place = (json: string) => {
          const size = memory.write(json, offset)
          return memory.subarray(offset, offset + size)
        }
        expect(read(place(`{"prompt":"${text}"}`)).log).toEqual([[length + 100, '']])
        expect(read(place(`{"prompt":"${text}\\n${text}"}`)).log).toEqual([[2 * length + 201, '']])
        for (const control of ['\x00', '\x1f', '\n']) {
          expect(() => read(place(`{"prompt":"${text}${control}${text}"}`))).toThrow(
            'not valid JSON',
          )
        }
      }
    }
  })
})

describe('reading fields of inner objects', () => {
  it.each([1, 7, 1_000_000])(
    'chosen fields of an object are read in chunks of %i bytes',
    (size) => {
      const text = JSON.stringify({
        n: 1,
        config: { schema: { n: 5, text: 'x'.repeat(9_000), config: { n: 6 } }, n: 2, most: [3] },
        messages: [{ config: { n: 7 } }],
        model: 'm',
      })
      expect(readGrouped(text, size)).toEqual({ 'config.n': 2, 'config.most': [3], model: 'm' })
    },
  )

  it('an inner field may occur once, and only in its spelling', () => {
    expect(() => readGrouped('{"config":{"n":1,"n":2}}', 99)).toThrow('"config.n" occurs twice')
    expect(() => readGrouped('{"config":{"N":1}}', 99)).toThrow('"config.n" is in another case')
    expect(() => readGrouped('{"config":{},"config":{"n":2}}', 99)).toThrow('"config" occurs twice')
  })

  it('an object that is something else is read as it is', () => {
    expect(readGrouped('{"config":null,"model":"m"}', 99)).toEqual({ config: null, model: 'm' })
    expect(readGrouped('{"config":[{"n":1}],"model":"m"}', 99)).toEqual({
      config: [{ n: 1 }],
      model: 'm',
    })
    expect(readGrouped('{"config":{},"model":"m"}', 99)).toEqual({ model: 'm' })
  })
})
