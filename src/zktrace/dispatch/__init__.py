"""One marked copy a station: releases of a shared model, and the copies made from them."""
