/** Badge with the state of a breaker. */

import { BREAKER_LOOKS, type BreakerLook } from './breaker-text'
import { Badge } from './elements'

export function BreakerBadge({ look, count }: { look: BreakerLook; count?: number }) {
  const { tone, icon, word } = BREAKER_LOOKS[look]
  return (
    <Badge tone={tone} icon={icon}>
      {count !== undefined && `${count} `}
      {word}
    </Badge>
  )
}
