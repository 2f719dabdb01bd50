/** Conversations of agents, from a seed: they grow turn by turn, so about 90 % of each prompt was sent before. */
import { createRandom, type Random } from 'spillway/testing'
import type { Conversation, Turn } from './vendors.js'

const TOKENS_OF = {
  system: 1_500,
  beginning: [500, 2_000],
  turn: [100, 450],
} as const
const TURNS = [6, 18] as const
const CHARACTERS_PER_TOKEN = 4
const WORDS = ['limit', 'queue', 'pod', 'answer', 'model', 'token', 'window', 'request', 'agent']

export class Agent {
  readonly random: Random
  readonly #system: string
  #turns: Turn[] = []
  #left = 0

  /** Agents of one model have the same instructions. */
  constructor(model: string, seed: number) {
    this.random = createRandom(seed)
    const instructions = `You work with ${model}. `
    this.#system = textOf(TOKENS_OF.system, createRandom(instructions.length), instructions)
  }

  /** The conversation with one more turn, or the next conversation. */
  next(): Conversation {
    if (this.#left === 0) this.#begin()
    const tokens = this.#turns.length === 0 ? TOKENS_OF.beginning : TOKENS_OF.turn
    this.#turns.push(this.#turn(tokens))
    return { system: this.#system, turns: this.#turns }
  }

  answered(text: string): void {
    this.#turns.push({ role: 'assistant', text })
    this.#left--
  }

  /** Not answered: the agent sends the same turn again. */
  failed(): void {
    this.#turns.pop()
  }

  #begin(): void {
    this.#left = between(this.random, TURNS)
    this.#turns = []
  }

  #turn(tokens: readonly [number, number]): Turn {
    const number = Math.floor(this.random() * 1e9)
    const text = textOf(between(this.random, tokens), this.random, `${number}: `)
    return { role: 'user', text }
  }
}

function between(random: Random, [from, to]: readonly [number, number]): number {
  return Math.floor(from + random() * (to - from + 1))
}

function textOf(tokens: number, random: Random, beginning: string): string {
  const length = tokens * CHARACTERS_PER_TOKEN
  let text = beginning
  while (text.length < length) text += `${WORDS[Math.floor(random() * WORDS.length)]} `
  return text.slice(0, length)
}
