from a import (b,
               c as d)
async def f(a, *b, c: "x" = 1, **d):
    async with a as b, (c): await d
    async for x, *y in z: yield x
    try: raise E from e
    except (A, B) as c: global g, h
    except: del a, b[0]
    else: assert (n := 1), f"no {n!r:>{w}} {{}}"
    finally: nonlocal q
    with (open(r'a\'') as f, g): x: int = yield from y
	x = lambda a, *b, c=1: (a, b), not c
  else = 3
match x:
    case [1, *_] if y: pass
a = b = {**c, 1: 2, } | {1, 2} - {i async for i in j}; print((yield))
'''open
