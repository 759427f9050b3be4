import { createHash } from 'node:crypto'

/** The source expression of an inline style for CSP. @param style exactly what stands between the tags */
export const styleSource = (style: string): string => `'sha256-${createHash('sha256').update(style).digest('base64')}'`

/**
 * The headers of a page.
 * @param style the source expression of its style
 * @param formAction the sources of `form-action`
 */
export function pageHeaders (style: string, formAction: readonly string[]): Readonly<Record<string, string>> {
  return {
    'content-type': 'text/html; charset=utf-8',
    'content-security-policy': [
      "default-src 'none'",
      `style-src ${style}`,
      `form-action ${formAction.join(' ')}`,
      "frame-ancestors 'none'",
      "base-uri 'none'"
    ].join('; '),
    // With `no-referrer`, browsers send `Origin: null` with a form, and the check of Origin refuses that. With this value, too, no other
    // origin gets a Referer.
    'referrer-policy': 'same-origin',
    'x-frame-options': 'DENY',
    'x-content-type-options': 'nosniff',
    'cache-control': 'no-store',
    // A client in a browser opens the login in a window of its own and waits for it there: any other value would cut the two apart.
    'cross-origin-opener-policy': 'unsafe-none'
  }
}
