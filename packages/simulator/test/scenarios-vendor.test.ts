import { holds } from './holds.js'

holds('pause', 'outage', 'failing', 'retry-storm', 'sick-pod', 'learned-limits')
