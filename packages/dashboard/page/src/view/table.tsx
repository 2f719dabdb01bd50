/** Tables as lists of columns, each with its heading and its cells. */
import type { ComponentChildren } from 'preact'
import { Scroller } from './elements'

export interface Column<Row> {
  title: string
  /** Aligned to the right, so that digits line up. */
  number?: true
  /** The content explains itself: the title is for screen readers only. */
  untitled?: true
  of(row: Row): ComponentChildren
}

/** The first column is the header cell of its row. */
export function Table<Row>(props: {
  label: string
  rows: readonly Row[]
  keyOf(row: Row): string
  columns: readonly Column<Row>[]
}) {
  const { label, rows, keyOf, columns } = props
  const [first, ...others] = columns
  return (
    <Scroller label={label}>
      <table>
        <thead>
          <tr>
            {columns.map(({ title, number, untitled }) => (
              <th key={title} scope="col" class={number && 'number'}>
                {untitled ? <span class="visually-hidden">{title}</span> : title}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {rows.map((row) => (
            <tr key={keyOf(row)}>
              <th scope="row">{first?.of(row)}</th>
              {others.map(({ title, number, of }) => (
                <td key={title} class={number && 'number'}>
                  {of(row)}
                </td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </Scroller>
  )
}
