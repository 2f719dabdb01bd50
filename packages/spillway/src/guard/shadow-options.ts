/** The option `shadow`: stages that report refusals without enforcing them. */
import { arrayOf, type Check, type OptionProblem, oneOf, text } from '../core/options/checks.js'
import { described } from '../core/options/schema.js'
import { SHADOW_ROWS } from './pipeline/stages.js'

const SHADOWABLE = SHADOW_ROWS.map(({ stage }) => stage)

export const readShadow: Check<true | readonly string[]> = (value, path, problems) => {
  if (value === true) return true
  if (Array.isArray(value)) return arrayOf(text())(value, path, problems)
  problems.push({ path, message: `must be true, or a list of stages: ${SHADOWABLE.join(', ')}` })
  return []
}
// A configuration file cannot define custom stages.
described(readShadow, {
  anyOf: [{ const: true }, { type: 'array', items: { enum: SHADOWABLE } }],
})

interface ShadowedOptions
  extends Readonly<Record<(typeof SHADOW_ROWS)[number]['option'], unknown>> {
  readonly shadow: true | readonly string[] | undefined
  readonly concurrency: { readonly adaptive: unknown } | undefined
  readonly stages: readonly { readonly name: string }[] | undefined
}

/** A stage that is off has nothing to report, and an adaptive limit is only found by enforcing it. */
export const checkShadow = (
  options: ShadowedOptions,
  path: string,
  problems: OptionProblem[],
): void => {
  const { shadow, concurrency, stages = [] } = options
  if (shadow === undefined) return
  const names = [...SHADOWABLE, ...stages.map(({ name }) => name)]
  for (const [index, stage] of shadow === true ? [] : shadow.entries()) {
    const at = `${path}.shadow[${index}]`
    if (!(names as string[]).includes(stage)) oneOf(...names)(stage, at, problems)
    const row = SHADOW_ROWS.find((each) => each.stage === stage)
    if (row === undefined || options[row.option] !== undefined) continue
    problems.push({ path: at, message: `has no effect without the option '${row.option}'` })
  }
  const covers = shadow === true || shadow.includes('concurrency')
  if (covers && concurrency?.adaptive !== undefined) {
    const message =
      'cannot be in shadow mode, because the limit is learned by enforcing it; remove it for now'
    problems.push({ path: `${path}.concurrency.adaptive`, message })
  }
}
