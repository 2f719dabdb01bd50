import { holds } from './holds.js'

holds('overload', 'spike', 'burst', 'one-key', 'throttled')
