/** A breaker's state, as every page shows it. */
import { Badge } from './bits'
import { BREAKER_LOOKS, type BreakerLook } from './breaker-text'

export function BreakerBadge({ look, count }: { look: BreakerLook; count?: number }) {
  const { tone, icon, word } = BREAKER_LOOKS[look]
  return (
    <Badge tone={tone} icon={icon}>
      {count !== undefined && `${count} `}
      {word}
    </Badge>
  )
}
