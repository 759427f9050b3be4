import { hash } from 'node:crypto'

/** SHA-256 in hex: how tokens of 256 random bits are kept. Not for passwords. */
export const sha256 = (text: string): string => hash('sha256', text, 'hex')

/** A token as it may be shown: its first eight characters and its last four, where there are enough of them. */
export const maskToken = (token: string): string => token.length < 16 ? '...' : `${token.slice(0, 8)}...${token.slice(-4)}`
