import { createHmac, randomBytes, timingSafeEqual } from 'node:crypto'

/** Creates a random key. A browser keeps it in a cookie, and the CSRF tokens of its forms are derived from it. */
export const newCsrfKey = (): string => randomBytes(16).toString('base64url')

/**
 * Creates the CSRF token of a form in one interaction. Other sites cannot create it, since they do not know the key.
 * @param key the key of the browser, made by `newCsrfKey`
 * @param uid the id of the interaction
 * @param shown the content of the page, which the token contains, so that the form can confirm only what was shown
 */
export const createCsrfToken = (key: string, uid: string, shown = ''): string =>
  `${shown === '' ? '' : `${Buffer.from(shown).toString('base64url')}.`}${macOf(key, uid, shown)}`

const macOf = (key: string, uid: string, shown: string): string =>
  createHmac('sha256', key).update(shown === '' ? uid : `${uid} ${shown}`).digest('base64url')

/**
 * Returns the page content (`shown`) that the CSRF token of a form contains, `''` if it contains none; undefined if the
 * token is not for this interaction and browser.
 */
export function readCsrfToken (key: string, uid: string, csrf: string): string | undefined {
  const [mac = '', text = ''] = csrf.split('.').reverse()
  const shown = Buffer.from(text, 'base64url').toString()
  const [received, expected] = [Buffer.from(mac), Buffer.from(macOf(key, uid, shown))]
  return received.length === expected.length && timingSafeEqual(received, expected) ? shown : undefined
}
