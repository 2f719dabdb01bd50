/** How much comes to each stage, what is turned away there, and how much goes on. */
import { callsOf, type Rates } from '../model/rates'
import type { StageName } from './stage-words'

export interface Gate {
  stage: StageName
  entering: number
  leaving: number
  refused: { code: string; rate: number }[]
}

export function gatesOf(stages: readonly StageName[], rates: Rates): Gate[] {
  const { refused } = rates
  let entering = callsOf(rates)
  return stages.map((stage) => {
    const here = Object.entries(refused)
      .filter(([key]) => key.startsWith(`${stage} `))
      .map(([key, rate]) => ({ code: key.slice(stage.length + 1), rate }))
      .sort((a, b) => b.rate - a.rate)
    const turnedAway = here.reduce((sum, { rate }) => sum + rate, 0)
    const gate = { stage, entering, leaving: Math.max(0, entering - turnedAway), refused: here }
    entering = gate.leaving
    return gate
  })
}
