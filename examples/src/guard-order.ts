import { ORDER } from 'spillway'

// The stage table that the guard runs.
for (const [index, { stage, option, scope, per, codes }] of ORDER.entries()) {
  const cells = [stage.padEnd(13), option.padEnd(12), scope.padEnd(7), per.padEnd(8)]
  const line = [String(index + 1).padStart(2), ...cells, codes.join(', ')].join(' ')
  console.log(line.trimEnd())
}
