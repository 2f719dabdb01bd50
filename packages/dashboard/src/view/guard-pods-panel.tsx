/** What each pod does with this guard, and how it sees its breaker. */
import { formatCount } from '../format'
import { fleet } from '../model/live'
import { Badge, Name, Panel, Scroller } from './bits'
import { BREAKER_LOOKS, lookOfCode } from './breaker-words'

export function GuardPodsPanel({ guard }: { guard: string }) {
  const known = fleet.value
  const place = known?.names.indexOf(guard) ?? -1
  if (known === undefined || place === -1) return null
  const rows = known.pods.flatMap((pod) => {
    const row = pod.guards.find(([each]) => each === place)
    return row === undefined ? [] : [{ pod: pod.pod, row }]
  })
  if (rows.length === 0) return null
  return (
    <Panel title="On each pod">
      <Scroller label="This guard on each pod">
        <table>
          <thead>
            <tr>
              <th scope="col">pod</th>
              <th scope="col">breaker, as it sees it</th>
              <th scope="col" class="number">
                calls
              </th>
              <th scope="col" class="number">
                refused
              </th>
              <th scope="col" class="number">
                running
              </th>
              <th scope="col" class="number">
                waiting
              </th>
            </tr>
          </thead>
          <tbody>
            {rows.map(({ pod, row: [, calls, refused, active, waiting, code] }) => {
              const look = BREAKER_LOOKS[lookOfCode(code)]
              return (
                <tr key={pod}>
                  <th scope="row">
                    <Name text={pod} />
                  </th>
                  <td>
                    <Badge tone={look.tone} icon={look.icon}>
                      {look.word}
                    </Badge>
                  </td>
                  <td class="number">{formatCount(calls)}/s</td>
                  <td class="number">{formatCount(refused)}/s</td>
                  <td class="number">{formatCount(active)}</td>
                  <td class="number">{formatCount(waiting)}</td>
                </tr>
              )
            })}
          </tbody>
        </table>
      </Scroller>
    </Panel>
  )
}
