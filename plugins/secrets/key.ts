import { createSecretKey, hkdfSync, scrypt, type KeyObject } from 'node:crypto'
import { promisify } from 'node:util'

/** A key that seals. Its id stands in front of what it sealed, and tells nothing of it. */
export interface Key { readonly id: string, readonly secret: KeyObject }

/** The key that comes from 32 secret bytes. Key and id are derived side by side, so that the id is no hash of the key. */
export function toKey (root: Uint8Array): Key {
  const part = (label: string, length: number): Buffer => Buffer.from(hkdfSync('sha256', root, '', `tool-hub ${label}`, length))
  return { id: part('key id', 4).toString('hex'), secret: createSecretKey(part('sealing', 32)) }
}

const derive = promisify<string, string, number, { N: number, r: number, p: number, maxmem: number }, Buffer>(scrypt)

/**
 * How a passphrase becomes a key. Never change it: what was sealed would not open again. The salt is fixed, since all replicas
 * must come to the same key from the passphrase alone; one table of guesses would serve against many gateways, so length must help.
 */
const passphrase = { salt: 'tool-hub encryption key', length: 32, cost: { N: 2 ** 15, r: 8, p: 3, maxmem: 64 * 1024 * 1024 } }
const shortest = 16

/** 32 bytes from one key as the environment has it. @param which its number, for the error, which never shows the key */
async function rootOf (text: string, which: number): Promise<Buffer> {
  if (/^[0-9a-f]{64}$/i.test(text)) return Buffer.from(text, 'hex')
  const plain = text.replace(/=$/, '').replaceAll('+', '-').replaceAll('/', '_')
  const bytes = Buffer.from(plain, 'base64url')
  if (bytes.length === 32 && bytes.toString('base64url') === plain) return bytes
  if ([...text].length >= shortest) return await derive(text.normalize('NFKC'), passphrase.salt, passphrase.length, passphrase.cost)
  throw new Error(
    `Key ${which} of ENCRYPTION_KEY is too short. Give 32 random bytes in hex (\`openssl rand -hex 32\`) or base64, or a passphrase of at least ${shortest} characters; commas stand between keys.`
  )
}

/** The keys of ENCRYPTION_KEY, in its order. @throws Error with a sentence that says what to give */
export async function parseKeys (text: string): Promise<Key[]> {
  const parts = text.split(',').map((part) => part.trim()).filter((part) => part !== '')
  if (parts.length === 0) {
    throw new Error('ENCRYPTION_KEY holds no key. Give 32 random bytes in hex (`openssl rand -hex 32`), or leave it unset.')
  }
  const roots: Buffer[] = []
  for (const part of parts) roots.push(await rootOf(part, roots.length + 1))
  return roots.map(toKey)
}
