/** Calls that enter each stage, are refused there, and pass. */
import type { Rates } from '../model/rates'
import type { StageName } from './stage-text'

export interface StageFlow {
  stage: StageName
  entering: number
  /** For the queue: more than `entering` when queued calls leave, less while they wait. */
  leaving: number
  refusedRate: number
  refused: { code: string; rate: number }[]
}

export function stageFlows(stages: readonly StageName[], rates: Rates): StageFlow[] {
  const { refused, calls, decided } = rates
  let entering = calls
  return stages.map((stage) => {
    const here = Object.entries(refused)
      .filter(([key]) => key.startsWith(`${stage} `))
      .map(([key, rate]) => ({ code: key.slice(stage.length + 1), rate }))
      .sort((a, b) => b.rate - a.rate)
    const refusedRate = here.reduce((sum, { rate }) => sum + rate, 0)
    const waited = stage === 'queue' ? decided - calls : 0
    const leaving = Math.max(0, entering + waited - refusedRate)
    const flow = { stage, entering, leaving, refusedRate, refused: here }
    entering = leaving
    return flow
  })
}
