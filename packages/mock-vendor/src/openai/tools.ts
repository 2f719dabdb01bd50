/** Tools and formats in requests to OpenAI. Chat completions nest them one level deeper than responses. */
import type { OutputRequest, Tool } from '../content/output.js'

type Nested = 'function' | undefined

/** The functions among the tools. Tools that the vendor runs itself, such as web search, are never called. */
export function functionsOf(tools: unknown, nested: Nested): Tool[] {
  const found: Tool[] = []
  for (const tool of Array.isArray(tools) ? tools : []) {
    if (tool?.type !== 'function') continue
    const { name, parameters } = nested === undefined ? tool : (tool[nested] ?? {})
    if (typeof name === 'string') found.push({ name, schema: parameters })
  }
  return found
}

export function choiceOf(choice: unknown, nested: Nested): OutputRequest['choice'] {
  if (choice === 'none' || choice === 'required') return choice
  if (typeof choice !== 'object' || choice === null) return 'auto'
  const inner = nested === undefined ? choice : (choice as Record<string, unknown>)[nested]
  const name = (inner as { name?: unknown } | undefined)?.name
  return typeof name === 'string' ? { name } : 'auto'
}

export function schemaOf(type: unknown, schema: unknown): OutputRequest['schema'] {
  if (type === 'json_object') return 'any'
  return type === 'json_schema' ? { value: schema } : undefined
}
