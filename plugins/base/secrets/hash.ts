import { hash } from 'node:crypto'

/** SHA-256 in hex: for storing tokens of 256 random bits, not for passwords. */
export const sha256 = (text: string): string => hash('sha256', text, 'hex')

/** A token as it may be shown: its first eight and last four characters; only dots when it is shorter than 16. */
export const maskToken = (token: string): string => token.length < 16 ? '...' : `${token.slice(0, 8)}...${token.slice(-4)}`
