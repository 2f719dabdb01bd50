/** The state of each breaker on each pod. A pod that differs has an old state, or a fault. */
import { computed } from '@preact/signals'
import { countOf } from '../format'
import { fleet } from '../model/live'
import { hrefOf } from '../model/route'
import type { Fleet, PodRow } from '../wire'
import { BREAKER_LOOKS, type BreakerLook, lookOfCode } from './breaker-text'
import { Name, Panel, Scroller } from './elements'

/** Guards with a breaker anywhere, in the order of their names; the order on the wire may change. */
const columns = computed(() => {
  const known = fleet.value
  if (known === undefined) return []
  const guarded = new Set<number>()
  for (const { guards } of known.pods) {
    for (const [place, , , , , breaker] of guards) if (breaker !== -1) guarded.add(place)
  }
  return [...guarded].map((place) => known.names[place] ?? '').sort()
})

export function Agreement() {
  const known = fleet.value
  const names = columns.value
  if (known === undefined || names.length === 0) return null
  const rows = known.pods.map((pod) => ({ pod: pod.pod, looks: looksOf(known, pod, names) }))
  const differing = names.filter((_, column) => {
    const seen = rows.map(({ looks }) => looks[column]).filter((look) => look !== 'none')
    return new Set(seen).size > 1
  })
  const note =
    rows.length === 1
      ? 'one pod'
      : differing.length === 0
        ? `all ${countOf(rows.length, 'pod')} agree`
        : `pods disagree about ${countOf(differing.length, 'guard')}`
  return (
    <Panel title="Breaker states by pod" note={note}>
      <ul class="signs" aria-label="Legend">
        {(['closed', 'half-open', 'open', 'isolated'] as const).map((look) => (
          <li key={look} class={`tone-${BREAKER_LOOKS[look].tone}`}>
            <i class={`sign sign-${look}`} /> {BREAKER_LOOKS[look].word}
          </li>
        ))}
      </ul>
      <Scroller label="Breakers as each pod sees them">
        <table class="matrix">
          <thead>
            <tr>
              <th scope="col">pod</th>
              {names.map((name) => (
                <th key={name} scope="col">
                  <a href={hrefOf({ page: 'guards', guard: name, lane: undefined })}>
                    <Name text={name} />
                  </a>
                </th>
              ))}
            </tr>
          </thead>
          <tbody>
            {rows.map(({ pod, looks }) => (
              <tr key={pod}>
                <th scope="row">
                  <Name text={pod} />
                </th>
                {looks.map((look, column) => (
                  <Cell key={names[column]} look={look} />
                ))}
              </tr>
            ))}
          </tbody>
        </table>
      </Scroller>
    </Panel>
  )
}

/** There may be thousands of cells, so each is one element; its sign is drawn by the style. */
function Cell({ look }: { look: BreakerLook }) {
  const { tone, word } = BREAKER_LOOKS[look]
  return (
    <td class={`tone-${tone} sign sign-${look}`} title={word}>
      {word}
    </td>
  )
}

function looksOf(known: Fleet, pod: PodRow, names: readonly string[]): BreakerLook[] {
  const byName = new Map(pod.guards.map((row) => [known.names[row[0]], lookOfCode(row[5])]))
  return names.map((name) => byName.get(name) ?? 'none')
}
