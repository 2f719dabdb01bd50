import { describe, expect, it } from 'vitest'
import { exampleOf } from './schema-example.js'

describe('example of a JSON schema', () => {
  it('example has every property of an object, required or not', () => {
    const schema = {
      type: 'object',
      properties: {
        city: { type: 'string' },
        days: { type: 'integer', minimum: 3 },
        share: { type: 'number', exclusiveMinimum: 0, exclusiveMaximum: 1 },
        exact: { type: 'boolean' },
        none: { type: 'null' },
        tags: { type: 'array', items: { type: 'string', maxLength: 2 }, minItems: 2 },
      },
      required: ['city'],
    }
    expect(exampleOf(schema)).toEqual({
      city: 'mock',
      days: 3,
      share: 0.5,
      exact: true,
      none: null,
      tags: ['mo', 'mo'],
    })
  })

  it('example takes a value that the schema names', () => {
    expect(exampleOf({ enum: ['celsius', 'kelvin'] })).toBe('celsius')
    expect(exampleOf({ const: 7 })).toBe(7)
    expect(exampleOf({ type: 'string', default: 'here' })).toBe('here')
  })

  it('example of a nullable value is not null', () => {
    expect(exampleOf({ type: ['null', 'integer'] })).toBe(1)
    expect(exampleOf({ anyOf: [{ type: 'null' }, { type: 'string' }] })).toBe('mock')
  })

  it('example follows $ref and merges allOf', () => {
    const schema = {
      $defs: { point: { type: 'object', properties: { x: { type: 'number' } } } },
      allOf: [{ $ref: '#/$defs/point' }, { properties: { y: { $ref: '#/$defs/point' } } }],
    }
    expect(exampleOf(schema)).toEqual({ x: 1, y: { x: 1 } })
  })

  it('example of a recursive schema ends', () => {
    const node = { type: 'object', properties: { next: { $ref: '#' } } }
    expect(JSON.stringify(exampleOf(node)).length).toBeLessThan(1_000)
    const tree = { type: 'object', required: ['next'], properties: { next: { $ref: '#' } } }
    expect(JSON.stringify(exampleOf(tree)).length).toBeLessThan(1_000)
    expect(exampleOf({ $ref: '#' })).toBe('mock')
  })

  it('example of a number fits its bounds and its step', () => {
    expect(exampleOf({ type: 'integer', maximum: -2 })).toBe(-2)
    expect(exampleOf({ type: 'integer', exclusiveMinimum: 1 })).toBe(2)
    expect(exampleOf({ type: 'integer', minimum: 7, multipleOf: 5 })).toBe(10)
    expect(exampleOf({ type: 'number', minimum: 0.25, maximum: 0.5 })).toBe(0.25)
  })

  it('example of a string has its format and its least length', () => {
    expect(exampleOf({ type: 'string', format: 'email' })).toMatch(/@/)
    expect(exampleOf({ type: 'string', minLength: 9 })).toHaveLength(9)
  })
})
