/** Recent actions of operators, through any pod. */
import { formatTime } from '../format'
import { acts } from '../model/live'
import { Name, Panel } from './elements'
import { Icon } from './icons'

export function AuditPanel() {
  if (acts.value.length === 0) return null
  return (
    <Panel title="Operator actions" note="newest first">
      <ul class="audit">
        {acts.value.map(({ at, pod, on, did, ok, by }) => (
          <li key={`${at} ${on} ${did}`} class={ok ? 'tone-good' : 'tone-refused'}>
            <span class="quiet mono">{formatTime(at)}</span>
            <span class="audit-sign">
              <Icon name={ok ? 'passed' : 'refused'} size={13} />
              <span class="visually-hidden">{ok ? 'done' : 'not done'}</span>
            </span>
            <span>
              <bdi class="name-full">{did}</bdi>{' '}
              <span class="quiet">
                on <Name text={on} />, by <Name text={by} /> through <Name text={pod} />
              </span>
            </span>
          </li>
        ))}
      </ul>
    </Panel>
  )
}
