/** The figures of this guard on each pod, and the state of the breaker on that pod. */
import { formatCount } from '../format'
import { fleet } from '../model/live'
import type { PodGuardRow } from '../wire'
import { BreakerBadge } from './breaker-badge'
import { lookOfCode } from './breaker-text'
import { Name, Panel } from './elements'
import { type Column, Table } from './table'

interface Row {
  pod: string
  figures: PodGuardRow
}

const COLUMNS: Column<Row>[] = [
  { title: 'pod', of: ({ pod }) => <Name text={pod} /> },
  {
    title: 'breaker, as this pod sees it',
    of: ({ figures }) => <BreakerBadge look={lookOfCode(figures[5])} />,
  },
  { title: 'calls', number: true, of: ({ figures }) => `${formatCount(figures[1])}/s` },
  { title: 'refused', number: true, of: ({ figures }) => `${formatCount(figures[2])}/s` },
  { title: 'running', number: true, of: ({ figures }) => formatCount(figures[3]) },
  { title: 'waiting', number: true, of: ({ figures }) => formatCount(figures[4]) },
]

export function GuardPodsPanel({ guard }: { guard: string }) {
  const known = fleet.value
  const place = known?.names.indexOf(guard) ?? -1
  if (known === undefined || place === -1) return null
  const rows = known.pods.flatMap(({ pod, guards }): Row[] => {
    const figures = guards.find(([each]) => each === place)
    return figures === undefined ? [] : [{ pod, figures }]
  })
  if (rows.length === 0) return null
  return (
    <Panel title="On each pod">
      <Table
        label="This guard on each pod"
        rows={rows}
        keyOf={({ pod }) => pod}
        columns={COLUMNS}
      />
    </Panel>
  )
}
