"""The inspector: web pages on this machine that show what agents did, and why.

`fairlead ui` runs it. The server makes HTML; a page works without the script, which adds what is live. Read `app.py`
first, then a page.

To add a page, write a module in `pages/`, and name it in `PAGES` of `app.py`. It has three parts:

- `ROUTES`: Starlette's routes, and `MENU`: its word in the menu and its address, if it is there.
- A function that asks the journal, and returns rows. It takes a `Reader`, so that a test can call it with a journal.
- A function that makes HTML of the rows, with `h` of `markup.py`. There is no other way to make HTML, so that nothing
  can be shown unescaped.

The endpoint joins them. It is a plain function, which Starlette calls on a thread, so that it may read files:

    def show(request: Request) -> Response:
        with reader_of(request) as reader:
            rows = busiest_hooks(reader)
        return page(request, "Hooks", hooks_table(rows))

    MENU = ("Hooks", "/hooks")
    ROUTES = [Route("/hooks", show)]

`guard.py` is in front of every route: an endpoint is only called for a caller who has signed in. A route that changes
something takes POST only, and the script calls it with the second secret (`data-post` in `ui.js`).
"""
