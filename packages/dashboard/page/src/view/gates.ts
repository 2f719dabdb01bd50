/** Calls that enter each stage, are refused there, and pass. */
import type { Rates } from '../model/rates'
import type { StageName } from './stage-words'

export interface Gate {
  stage: StageName
  entering: number
  /** Of the queue it may be more than entered, because queued calls leave later; or less, while they wait. */
  leaving: number
  turnedAway: number
  refused: { code: string; rate: number }[]
}

export function gatesOf(stages: readonly StageName[], rates: Rates): Gate[] {
  const { refused, calls, decided } = rates
  let entering = calls
  return stages.map((stage) => {
    const here = Object.entries(refused)
      .filter(([key]) => key.startsWith(`${stage} `))
      .map(([key, rate]) => ({ code: key.slice(stage.length + 1), rate }))
      .sort((a, b) => b.rate - a.rate)
    const turnedAway = here.reduce((sum, { rate }) => sum + rate, 0)
    const waited = stage === 'queue' ? decided - calls : 0
    const leaving = Math.max(0, entering + waited - turnedAway)
    const gate = { stage, entering, leaving, turnedAway, refused: here }
    entering = leaving
    return gate
  })
}
