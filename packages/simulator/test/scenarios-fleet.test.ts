import { holds } from './holds.js'

holds('recovery', 'scale', 'store-loss')
