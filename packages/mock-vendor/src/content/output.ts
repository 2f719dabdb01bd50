/** Output that a request specifies: text, JSON that fits a schema, or a tool call. */
import { exampleOf } from './schema-example.js'

export type Output =
  | { readonly kind: 'text' }
  | { readonly kind: 'json'; readonly text: string }
  | { readonly kind: 'tool'; readonly name: string; readonly text: string }

export interface Tool {
  readonly name: string
  readonly schema: unknown
}

export interface OutputRequest {
  readonly tools: readonly Tool[]
  /** `auto` calls the first tool unless the last message has a tool's result. */
  readonly choice: 'auto' | 'none' | 'required' | { readonly name: string }
  /** Whether the last message has the result of a tool. */
  readonly hasResult: boolean
  /** Undefined: text. `any`: JSON without a schema. */
  readonly schema?: { readonly value: unknown } | 'any' | undefined
}

export function outputOf({ tools, choice, hasResult, schema }: OutputRequest): Output {
  const tool =
    typeof choice === 'object' ? tools.find(({ name }) => name === choice.name) : tools[0]
  const mayCall = choice === 'required' || typeof choice === 'object' || !hasResult
  if (tool !== undefined && choice !== 'none' && mayCall) {
    return { kind: 'tool', name: tool.name, text: JSON.stringify(exampleOf(tool.schema ?? {})) }
  }
  if (schema === undefined) return { kind: 'text' }
  const value = schema === 'any' ? { answer: 'mock' } : exampleOf(schema.value)
  return { kind: 'json', text: JSON.stringify(value) }
}

/** The text that a response has, or undefined for numbers. */
export function fixedText(output: Output): string | undefined {
  return output.kind === 'text' ? undefined : output.text
}
