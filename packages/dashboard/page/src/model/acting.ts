/** Requests to the gateway. The token is kept in memory, or for this tab if the user chooses that. */
import { signal } from '@preact/signals'
import type { Act, ActAnswer, DeadLetters, Explanation } from '../wire'

const TOKEN_KEY = 'spillway.token'

export const token = signal<string | undefined>(remembered())

/** Base address of the page, with or without a trailing slash. */
export function baseUrl(): string {
  return `${location.pathname.replace(/\/$/, '')}/`
}

export type ActResult =
  | { kind: 'done'; words: string }
  | { kind: 'needs-token'; words: string }
  | { kind: 'failed'; words: string }

export async function sendAct(act: Act): Promise<ActResult> {
  const headers: Record<string, string> = { 'content-type': 'application/json' }
  if (token.value !== undefined) headers.authorization = `Bearer ${token.value}`
  let response: Response
  try {
    const body = JSON.stringify(act)
    response = await fetch(`${baseUrl()}act`, { method: 'POST', headers, body })
  } catch {
    return {
      kind: 'failed',
      words: 'The gateway cannot be reached. The action may or may not have been performed.',
    }
  }
  const answer = (await response.json().catch(() => undefined)) as ActAnswer | undefined
  if (response.ok && answer?.ok === true) return { kind: 'done', words: answer.did }
  const words =
    answer?.ok === false ? answer.problem : `The gateway answered with ${response.status}.`
  if (response.status !== 401) return { kind: 'failed', words }
  forgetToken()
  return { kind: 'needs-token', words }
}

export async function readDeadLetters(queue: string, count: number): Promise<DeadLetters> {
  const query = new URLSearchParams({ queue, from: '0', count: String(count) })
  const headers: Record<string, string> = {}
  if (token.value !== undefined) headers.authorization = `Bearer ${token.value}`
  const response = await fetch(`${baseUrl()}dead?${query}`, { headers })
  if (!response.ok) throw new Error(`The gateway answered with ${response.status}.`)
  return (await response.json()) as DeadLetters
}

/** Fetches the explanation of a request, from any pod. */
export async function explainRequest(requestId: string): Promise<Explanation> {
  const headers: Record<string, string> = {}
  if (token.value !== undefined) headers.authorization = `Bearer ${token.value}`
  const query = new URLSearchParams({ request: requestId })
  const response = await fetch(`${baseUrl()}explain?${query}`, { headers })
  if (!response.ok) throw new Error(`The gateway answered with ${response.status}.`)
  return (await response.json()) as Explanation
}

export function setToken(value: string, { remember }: { remember: boolean }): void {
  token.value = value
  try {
    if (remember) sessionStorage.setItem(TOKEN_KEY, value)
    else sessionStorage.removeItem(TOKEN_KEY)
  } catch {}
}

export function forgetToken(): void {
  token.value = undefined
  try {
    sessionStorage.removeItem(TOKEN_KEY)
  } catch {}
}

function remembered(): string | undefined {
  try {
    return sessionStorage.getItem(TOKEN_KEY) ?? undefined
  } catch {
    return undefined
  }
}
