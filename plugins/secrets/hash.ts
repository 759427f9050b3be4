import { hash } from 'node:crypto'

/** SHA-256 in hex: how tokens of 256 random bits are kept. Not for passwords. */
export const sha256 = (text: string): string => hash('sha256', text, 'hex')
