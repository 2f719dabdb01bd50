import { holds } from './holds.js'

holds('pause', 'outage', 'failing', 'sick-pod')
